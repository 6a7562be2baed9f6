//! Confirmation requests through the client, in the form of its revision; without such a client, a
//! refusal that names the setting.

use super::call;
use palisade_tests::mcp::Client;
use palisade_tests::{Program, World};
use serde_json::{Value, json};

/// Returns the capabilities of a client that can show forms.
fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn write(path: &str) -> Value {
    call("write_file", json!({"path": path, "content": "written"}))
}

fn class(answer: &Value) -> &str {
    answer["result"]["_meta"]["dev.palisade/error"]["class"]
        .as_str()
        .unwrap_or_else(|| panic!("no error: {answer}"))
}

/// Returns a user's answer, as a client sends it.
fn decision(action: &str, decision: &str) -> Value {
    json!({"action": action, "content": {"decision": decision}})
}

/// Starts a call of the previous revision and answers its confirmation request.
fn asked(client: &mut Client, path: &str, with: &Value) -> (Value, Value) {
    let id = client.begin("tools/call", &write(path));
    let question = client.receive_method("elicitation/create");
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": with}));
    (question, client.answer(id))
}

#[test]
fn legacy_client_is_asked_during_the_call() {
    let world = World::new();
    let mut client = Client::legacy(Program::new(&world), &forms());
    let (question, answer) = asked(&mut client, "yes.txt", &decision("accept", "allow_once"));
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("`write_file` (class write)")
            && message.contains("It would change: `yes.txt`"),
        "{message}"
    );
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(world.read("yes.txt").as_deref(), Some("written"));
    for (path, no) in [
        ("no.txt", decision("accept", "deny")),
        ("declined.txt", json!({"action": "decline"})),
        ("cancelled.txt", json!({"action": "cancel"})),
        ("strange.txt", decision("accept", "surely")),
    ] {
        let (_, answer) = asked(&mut client, path, &no);
        assert_eq!(class(&answer), "user_denied");
        let text = super::text(&answer);
        assert!(text.contains("If the user saw no question"), "{text}");
        assert!(text.contains("the server's log") && !text.contains("--allow"), "{text}");
        assert_eq!(world.read(path), None);
    }
}

#[test]
fn session_answer_is_requested_once() {
    let world = World::new();
    let mut client = Client::legacy(Program::new(&world), &forms());
    asked(&mut client, "one.txt", &decision("accept", "allow_for_session"));
    let answer = client.request("tools/call", &write("two.txt"));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(client.received("elicitation/create").is_empty());
}

#[test]
fn error_answer_allows_nothing() {
    let world = World::new();
    let mut client = Client::legacy(Program::new(&world), &forms());
    let id = client.begin("tools/call", &write("a.txt"));
    let question = client.receive_method("elicitation/create");
    let error = json!({"code": -32603, "message": "no window"});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
    assert_eq!(class(&client.answer(id)), "permission_denied");
    assert_eq!(world.read("a.txt"), None);
}

#[test]
fn question_of_a_cancelled_call_is_withdrawn() {
    let world = World::new();
    let mut client = Client::legacy(Program::new(&world), &forms());
    let id = client.begin("tools/call", &write("a.txt"));
    let question = client.receive_method("elicitation/create");
    client.notify("notifications/cancelled", &json!({"requestId": id}));
    let withdrawn = client.receive_method("notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": decision("accept", "allow_once")}));
    client.request("ping", &json!({}));
    assert_eq!(world.read("a.txt"), None);
    let (_, rest) = client.end();
    // A request of the server may have the same id.
    assert!(
        rest.iter().all(|message| message["id"] != id || message.get("method").is_some()),
        "{rest:?}"
    );
}

#[test]
fn client_without_forms_gets_a_refusal_with_the_setting() {
    let world = World::new();
    let mut client = Client::legacy(Program::new(&world), &json!({}));
    let legacy = client.request("tools/call", &write("a.txt"));
    let modern = client.request_modern("tools/call", write("a.txt"), &json!({}));
    for answer in [legacy, modern] {
        assert_eq!(class(&answer), "permission_denied");
        assert_eq!(answer["result"]["content"].as_array().map(Vec::len), Some(1), "{answer}");
        let text = super::text(&answer);
        assert!(text.contains("the server's log") && text.contains("ask the user"), "{text}");
        assert!(!text.contains("--allow"), "no operator's advice for the model: {answer}");
    }
    assert_eq!(world.read("a.txt"), None);
    let (ran, _) = client.end();
    ran.stderr_contains(&[
        "a call of `write_file` failed: ",
        "--allow write",
        "among the server's arguments",
    ]);
}

/// Makes the first round of the current revision, and returns its question and its state.
fn first_round(client: &mut Client, params: &Value) -> (Value, String) {
    let answer = client.request_modern("tools/call", params.clone(), &forms());
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let question = answer["result"]["inputRequests"]["palisade.confirm"].clone();
    assert_eq!(question["method"], "elicitation/create", "{answer}");
    (question, answer["result"]["requestState"].as_str().unwrap().to_owned())
}

fn with_answer(mut params: Value, state: &str, answer: &Value) -> Value {
    params["requestState"] = json!(state);
    params["inputResponses"] = json!({"palisade.confirm": answer});
    params
}

#[test]
fn modern_client_answers_with_the_next_request() {
    let world = World::new();
    let mut client = Client::start(Program::new(&world));
    let (question, state) = first_round(&mut client, &write("a.txt"));
    assert!(
        question["params"]["message"].as_str().unwrap().contains("It would change: `a.txt`"),
        "{question}"
    );
    let choices = &question["params"]["requestedSchema"]["properties"]["decision"]["oneOf"];
    assert_eq!(choices.as_array().unwrap().len(), 2, "there is no lasting choice: {choices}");
    assert_eq!(world.read("a.txt"), None);
    let again = with_answer(write("a.txt"), &state, &decision("accept", "allow_once"));
    let answer = client.request_modern("tools/call", again, &forms());
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(world.read("a.txt").as_deref(), Some("written"));
    let (_, state) = first_round(&mut client, &write("b.txt"));
    let again = with_answer(write("b.txt"), &state, &decision("decline", "allow_once"));
    assert_eq!(class(&client.request_modern("tools/call", again, &forms())), "user_denied");
    assert_eq!(world.read("b.txt"), None);
}

#[test]
fn yes_counts_once_for_its_call_and_state() {
    let world = World::new();
    let mut client = Client::start(Program::new(&world));
    let yes = decision("accept", "allow_once");
    let refused = |client: &mut Client, params: Value| {
        let answer = client.request_modern("tools/call", params, &forms());
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(
            answer["error"]["message"].as_str().unwrap().contains("`requestState`"),
            "{answer}"
        );
    };
    let (_, state) = first_round(&mut client, &write("a.txt"));
    refused(&mut client, with_answer(write("other.txt"), &state, &yes));
    refused(&mut client, with_answer(call("delete_file", json!({"path": "a.txt"})), &state, &yes));
    refused(&mut client, with_answer(write("a.txt"), &format!("{state}-TAMPERED"), &yes));
    refused(&mut client, with_answer(write("a.txt"), "", &yes));
    // Without a state, an answer is ignored.
    let mut unasked = write("a.txt");
    unasked["inputResponses"] = json!({"palisade.confirm": yes});
    let asked = client.request_modern("tools/call", unasked, &forms());
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!((world.read("a.txt"), world.read("other.txt")), (None, None));
    let used = with_answer(write("a.txt"), &state, &yes);
    assert_eq!(
        client.request_modern("tools/call", used.clone(), &forms())["result"]["isError"],
        false
    );
    std::fs::remove_file(world.root().join("a.txt")).unwrap();
    refused(&mut client, used);
    assert_eq!(world.read("a.txt"), None);
}

#[test]
fn invalid_answer_is_asked_again() {
    let world = World::new();
    let mut client = Client::start(Program::new(&world));
    for answer in [json!(3), json!({}), json!(null), json!("accept")] {
        let (_, state) = first_round(&mut client, &write("a.txt"));
        let again = client.request_modern(
            "tools/call",
            with_answer(write("a.txt"), &state, &answer),
            &forms(),
        );
        assert_eq!(again["result"]["resultType"], "input_required", "{answer}: {again}");
        assert_ne!(again["result"]["requestState"], state, "each question has a state of its own");
    }
    assert_eq!(world.read("a.txt"), None);
}

#[test]
fn modern_yes_never_counts_for_a_later_call() {
    let world = World::new();
    let file = world.home().join("settings.toml");
    std::fs::write(&file, "[confirm.tools]\nwrite_file = \"prompt_once\"\n").unwrap();
    let program = || Program::new(&world).args(["--config"]).args([file.clone()]);
    let mut client = Client::start(program());
    let (_, state) = first_round(&mut client, &write("a.txt"));
    let again = with_answer(write("a.txt"), &state, &decision("accept", "allow_once"));
    assert_eq!(client.request_modern("tools/call", again, &forms())["result"]["isError"], false);
    first_round(&mut client, &write("b.txt"));
    assert_eq!(world.read("b.txt"), None);
    // An allowance from the previous revision does not apply to the current one.
    let mut client = Client::legacy(program(), &forms());
    asked(&mut client, "c.txt", &decision("accept", "allow_for_session"));
    assert_eq!(client.request("tools/call", &write("d.txt"))["result"]["isError"], false);
    first_round(&mut client, &write("e.txt"));
    assert_eq!(world.read("e.txt"), None);
}
