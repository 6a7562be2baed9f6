//! An MCP client that cannot ask its user: its write waits for somebody who is attached to the
//! server, and is refused at once if nobody is.

use crate::mcp_client::{KINDS, Kind, McpClient};
use palisade_tests::World;
use palisade_tests::api::{Api, until};
use palisade_tests::mcp::{MODERN, modern};
use serde_json::{Value, json};
use std::thread::JoinHandle;

/// Makes a write as a client of this kind, on a thread of its own.
fn write(api: &Api, kind: Kind, path: &str) -> JoinHandle<Value> {
    let client = McpClient::connect(api, kind);
    let input = json!({"path": path, "content": "written"});
    std::thread::spawn(move || client.call("write_file", &input).message())
}

#[test]
fn call_waits_while_an_operator_is_attached_and_runs_when_allowed() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let mut events = api.operator.events("/events");
    for (kind, decision) in KINDS.into_iter().flat_map(|kind| [(kind, "allow"), (kind, "deny")]) {
        let path = format!("{kind:?}-{decision}.txt");
        let call = write(&api, kind, &path);
        let asked = events.find(|event| event.name == "tool.confirmation_requested").json();
        assert_eq!(asked["projected_modifications"], json!([path]), "{asked}");
        assert_eq!(world.read(&path), None);
        let answer = api.operator.decide(&asked, decision);
        assert_eq!(answer.status, 200, "{answer:?}");
        let result = call.join().unwrap();
        assert_eq!(result["result"]["isError"], decision == "deny", "{result}");
        assert_eq!(world.read(&path).is_some(), decision == "allow", "{kind:?}");
    }
}

#[test]
fn question_that_the_client_closes_is_left_to_the_operator() {
    const WRITE: [(&str, &str); 3] = [
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "write_file"),
    ];
    let world = World::new();
    let api = Api::start(&world, &[]);
    let _attending = api.operator.events("/events");
    let sender =
        WRITE.into_iter().fold(api.client.clone(), |all, (name, value)| all.with(name, value));
    let message = |params: &Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let forms = json!({"elicitation": {}});
    let begin = |path: &str| {
        let arguments = json!({"path": path, "content": "written"});
        let params = modern(json!({"name": "write_file", "arguments": arguments}), &forms);
        let answer = sender.post("/mcp", &message(&params)).message();
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        (params, answer["result"]["requestState"].clone())
    };
    let with = |(mut params, state): (Value, Value), action: &str| {
        params["requestState"] = state;
        params["inputResponses"] = json!({"palisade.confirm": {"action": action}});
        let (client, message) = (sender.clone(), message(&params));
        std::thread::spawn(move || client.post("/mcp", &message).message())
    };
    for decision in ["allow", "deny"] {
        let path = format!("{decision}.txt");
        let call = with(begin(&path), "cancel");
        // The first round has asked as well, and ended with its question.
        let mut asked = Value::Null;
        until("the operator is asked", || {
            asked = api.operator.get("/confirmations").message()["items"][0].clone();
            asked["projected_modifications"] == json!([path])
        });
        assert_eq!(api.operator.decide(&asked, decision).status, 200);
        let result = call.join().unwrap();
        assert_eq!(result["result"]["isError"], decision == "deny", "{result}");
        assert_eq!(world.read(&path).is_some(), decision == "allow");
    }
    // An answer of the client is not asked about again.
    let result = with(begin("declined.txt"), "decline").join().unwrap();
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert_eq!(world.read("declined.txt"), None);
}

#[test]
fn call_is_refused_at_once_if_nobody_is_attached_and_names_the_console() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    // A client's stream and an observer's are nobody who could answer.
    let _clients = api.client.events("/events");
    let _observers = api.operator.events("/events?observer=true");
    for kind in KINDS {
        let result = write(&api, kind, "a.txt").join().unwrap();
        assert_eq!(result["result"]["isError"], true, "{result}");
        let said = result.to_string();
        let console = format!("the server's console (`http://{}`)", api.endpoint.address);
        assert!(said.contains(&console), "{said}");
        // A model with a shell of its own could run the command that makes it the operator.
        assert!(!said.contains("palisade console"), "{said}");
        assert!(said.contains("this client has declared no `elicitation`"), "{said}");
    }
    assert_eq!(world.read("a.txt"), None);
    api.signal(rustix::process::Signal::TERM);
    let ran = api.endpoint.end();
    ran.stderr_contains(&["--allow write", "the arguments that this server is started with"]);
    assert!(!ran.stderr.contains("client's configuration"), "{ran:?}");
}

#[test]
fn call_waits_for_somebody_to_come_if_the_console_was_asked_for() {
    let world = World::new();
    let api = Api::start(&world, &["--console"]);
    for kind in KINDS {
        let path = format!("{kind:?}.txt");
        let call = write(&api, kind, &path);
        // Nobody streams: the operator comes and looks.
        let mut question = Value::Null;
        until("the question is open", || {
            question = api.operator.get("/confirmations").message()["items"][0].clone();
            !question.is_null()
        });
        assert_eq!(question["projected_modifications"], json!([path]), "{question}");
        assert_eq!(api.operator.decide(&question, "allow").status, 200);
        let result = call.join().unwrap();
        assert_eq!(result["result"]["isError"], false, "{result}");
        assert_eq!(world.read(&path).as_deref(), Some("written"));
    }
}
