//! Requests from plugins to their client: sent in the form of the client's revision, answered,
//! declined, and refused.

use super::{call, serving, text};
use palisade_tests::World;
use palisade_tests::guest::CONTRACT_CLIENT;
use palisade_tests::mcp::Client;
use serde_json::{Value, json};

/// Returns the capabilities of a client that supports every kind of request.
fn all() -> Value {
    json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}})
}

fn steps(steps: impl Into<Value>) -> Value {
    let steps: Value = steps.into();
    call("ask", json!({"steps": steps}))
}

/// Returns a request for a form with a name.
fn form(key: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"key": key, "kind": "elicitation", "params": {"message": "Who?", "requestedSchema": schema}})
}

fn sampling(key: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": "The capital?"}});
    json!({"key": key, "kind": "sampling", "params": {"messages": [message], "maxTokens": 100}})
}

fn roots(key: &str) -> Value {
    json!({"key": key, "kind": "roots"})
}

/// The client's answers to each kind of request.
fn filled(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

fn said() -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"})
}

fn listed() -> Value {
    json!({"roots": [{"uri": "file:///home", "name": "home"}]})
}

/// Returns the results of the steps.
#[track_caller]
fn done(answer: &Value) -> Value {
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    serde_json::from_str(&text(answer)).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Answers the server's next request with this method.
#[track_caller]
fn reply(client: &mut Client, method: &str, with: (&str, Value)) -> Value {
    let question = client.receive_method(method);
    let (part, value) = with;
    let mut response = json!({"jsonrpc": "2.0", "id": question["id"]});
    response[part] = value;
    client.send(&response);
    question
}

#[test]
fn legacy_client_is_asked_every_kind_during_the_call() {
    let world = World::new();
    let mut client = Client::legacy(serving(&world, CONTRACT_CLIENT), &all());
    let asked =
        json!(["supported", {"ask": [form("who"), sampling("capital")]}, {"ask": [roots("dirs")]}]);
    let id = client.begin("tools/call", &steps(asked));
    let question = reply(&mut client, "elicitation/create", ("result", filled("Ada")));
    assert_eq!(question["params"]["message"], "The plugin contract_client asks: Who?");
    assert_eq!(question["params"]["requestedSchema"]["required"], json!(["name"]));
    let question = reply(&mut client, "sampling/createMessage", ("result", said()));
    assert_eq!(question["params"]["maxTokens"], 100);
    reply(&mut client, "roots/list", ("result", listed()));
    let answer = client.answer(id);
    let kinds = json!(["elicitation", "sampling", "roots"]);
    assert_eq!(done(&answer), json!([kinds, [{"name": "Ada"}, said()], [listed()]]));
}

#[test]
fn answer_counts_in_the_memory_of_a_call() {
    let world = World::new();
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("palisade.toml"), "[limits]\nmemory = \"4MiB\"\n").unwrap();
    let mut client = Client::legacy(serving(&world, CONTRACT_CLIENT), &all());
    // As values, the large answers take some 10 MiB, and each copy as much again.
    let large = |count: usize| json!({"name": "Ada", "more": vec![json!({"": 0}); count]});
    for (count, is_told) in [(10, true), (16_000, false), (10, true)] {
        let id = client.begin("tools/call", &steps(json!([{"ask": [form("who")]}])));
        let filled = json!({"action": "accept", "content": large(count)});
        reply(&mut client, "elicitation/create", ("result", filled));
        let said = done(&client.answer(id));
        match is_told {
            true => assert_eq!(said[0], json!([large(count)])),
            false => {
                let why = said[0]["invalid"].as_str().unwrap_or_else(|| panic!("{said}"));
                assert!(why.starts_with("the client's answer to `who` is too large: "), "{why}");
            }
        }
    }
}

#[test]
fn decline_error_and_invalid_answer_reach_the_plugin() {
    let world = World::new();
    let mut client = Client::legacy(serving(&world, CONTRACT_CLIENT), &all());
    let error = |code: i32| ("error", json!({"code": code, "message": "no"}));
    for (question, method, with, expected) in [
        (
            form("a"),
            "elicitation/create",
            ("result", json!({"action": "decline"})),
            json!("declined"),
        ),
        (
            form("a"),
            "elicitation/create",
            ("result", json!({"action": "cancel"})),
            json!("declined"),
        ),
        (form("a"), "elicitation/create", error(-32603), json!("unavailable")),
        (sampling("a"), "sampling/createMessage", error(-1), json!("declined")),
        (
            sampling("a"),
            "sampling/createMessage",
            ("result", listed()),
            json!({"invalid": "the client's answer to `a` is none"}),
        ),
    ] {
        let id = client.begin("tools/call", &steps(json!([{"ask": [question]}])));
        reply(&mut client, method, with);
        assert_eq!(done(&client.answer(id)), json!([expected]));
    }
}

#[test]
fn invalid_form_content_is_an_error_in_either_revision() {
    let world = World::new();
    let mut client = Client::legacy(serving(&world, CONTRACT_CLIENT), &all());
    let asked = || steps(json!([{"ask": [form("who")]}]));
    for content in [json!({"name": 3}), json!({}), json!({"other": "Ada"})] {
        let wrong = json!({"action": "accept", "content": content});
        let id = client.begin("tools/call", &asked());
        reply(&mut client, "elicitation/create", ("result", wrong.clone()));
        let legacy = done(&client.answer(id));
        let modern = done(&client.request_modern(
            "tools/call",
            with(asked(), None, json!({"who": wrong})),
            &all(),
        ));
        for said in [legacy, modern] {
            let why = said[0]["invalid"].as_str().unwrap_or_else(|| panic!("{said}"));
            assert!(why.contains("answer to `who`") && why.contains("name"), "{why}");
        }
    }
}

#[test]
fn plugin_question_of_a_cancelled_call_is_withdrawn() {
    let world = World::new();
    let mut client = Client::legacy(serving(&world, CONTRACT_CLIENT), &all());
    let id = client.begin("tools/call", &steps(json!([{"ask": [form("a")]}])));
    let question = client.receive_method("elicitation/create");
    client.notify("notifications/cancelled", &json!({"requestId": id}));
    assert_eq!(
        client.receive_method("notifications/cancelled")["params"]["requestId"],
        question["id"]
    );
    client.request("ping", &json!({}));
}

#[test]
fn undeclared_capability_is_not_used() {
    let world = World::new();
    let some = json!({"sampling": {}});
    let asked = || steps(json!(["supported", {"ask": [form("a")]}]));
    let mut client = Client::legacy(serving(&world, CONTRACT_CLIENT), &some);
    let expected = json!([["sampling"], {"unsupported": "elicitation"}]);
    assert_eq!(done(&client.request("tools/call", &asked())), expected);
    assert_eq!(done(&client.request_modern("tools/call", asked(), &some)), expected);
    let nobody = json!([[], "unavailable"]);
    assert_eq!(done(&client.request_modern("tools/call", asked(), &json!({}))), nobody);
}

#[test]
fn unmet_requirement_is_an_error_of_the_revision() {
    let world = World::new();
    let needs = || steps(json!([{"need": ["sampling"]}]));
    let mut client = Client::legacy(serving(&world, CONTRACT_CLIENT), &json!({}));
    let legacy = client.request("tools/call", &needs());
    assert_eq!(legacy["result"]["isError"], true, "{legacy}");
    assert_eq!(text(&legacy), "the tool needs a client that can be asked for sampling");
    let modern = client.request_modern("tools/call", needs(), &json!({}));
    assert_eq!(modern["error"]["code"], -32021, "{modern}");
    assert_eq!(modern["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
    assert_eq!(
        done(&client.request_modern("tools/call", needs(), &json!({"sampling": {}}))),
        json!(["had"])
    );
}

#[test]
fn form_for_a_secret_is_refused_in_either_revision() {
    let world = World::new();
    let mut secret = form("a");
    secret["params"]["requestedSchema"]["properties"] = json!({"password": {"type": "string"}});
    let mut client = Client::legacy(serving(&world, CONTRACT_CLIENT), &all());
    let asked = || steps(json!([{"ask": [secret]}]));
    for answer in [
        client.request("tools/call", &asked()),
        client.request_modern("tools/call", asked(), &all()),
    ] {
        assert!(
            done(&answer)[0]["invalid"]
                .as_str()
                .unwrap()
                .contains("`password` is one for a secret"),
            "{answer}"
        );
    }
    assert!(client.received("elicitation/create").is_empty());
}

/// Makes one round, and returns its requests by key and its state.
#[track_caller]
fn round(client: &mut Client, params: &Value) -> (Value, String) {
    let answer = client.request_modern("tools/call", params.clone(), &all());
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    (
        answer["result"]["inputRequests"].clone(),
        answer["result"]["requestState"].as_str().unwrap().to_owned(),
    )
}

fn keys(requests: &Value) -> Vec<&str> {
    requests.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns the same call with answers and their state.
fn with(mut params: Value, state: Option<&str>, answers: Value) -> Value {
    if let Some(state) = state {
        params["requestState"] = json!(state);
    }
    params["inputResponses"] = answers;
    params
}

#[test]
fn modern_client_brings_answers_round_by_round() {
    let world = World::new();
    let mut client = Client::start(serving(&world, CONTRACT_CLIENT));
    let asked = steps(
        json!([{"ask": [form("who"), sampling("capital"), roots("dirs")]}, {"ask": [form("who")]}]),
    );
    let (requests, first) = round(&mut client, &asked);
    assert_eq!(
        keys(&requests),
        ["capital", "dirs", "who"],
        "the requests of one call of `ask` arrive together"
    );
    assert_eq!(requests["who"]["method"], "elicitation/create");
    assert_eq!(requests["who"]["params"]["message"], "The plugin contract_client asks: Who?");
    assert_eq!(
        (&requests["capital"]["method"], &requests["dirs"]["method"]),
        (&json!("sampling/createMessage"), &json!("roots/list"))
    );
    let some = json!({"who": filled("Ada"), "dirs": listed(), "more": 1});
    let (requests, second) = round(&mut client, &with(asked.clone(), Some(&first), some));
    assert_eq!(keys(&requests), ["capital"], "an answered question is not asked again");
    let (requests, third) =
        round(&mut client, &with(asked.clone(), Some(&second), json!({"capital": said()})));
    assert_eq!(keys(&requests), ["who"], "an answer applies to one question");
    assert!(first != second && second != third, "each round has a state of its own");
    let last = client.request_modern(
        "tools/call",
        with(asked, Some(&third), json!({"who": filled("Bob")})),
        &all(),
    );
    assert_eq!(done(&last), json!([[{"name": "Ada"}, said(), listed()], [{"name": "Bob"}]]));
}

#[test]
fn answer_without_state_is_accepted_and_invalid_one_asked_again() {
    let world = World::new();
    let mut client = Client::start(serving(&world, CONTRACT_CLIENT));
    let asked = steps(json!([{"ask": [form("who")]}]));
    let unasked = with(asked.clone(), None, json!({"who": filled("Ada"), "other": 3}));
    assert_eq!(
        done(&client.request_modern("tools/call", unasked, &all())),
        json!([[{"name": "Ada"}]])
    );
    for none in [
        json!({"who": 12345}),
        json!({"other": filled("Ada")}),
        json!(null),
        json!({"who": {"action": "maybe"}}),
    ] {
        let (requests, _) = round(&mut client, &with(asked.clone(), None, none));
        assert_eq!(keys(&requests), ["who"]);
    }
    let no = with(asked, None, json!({"who": {"action": "decline"}}));
    assert_eq!(done(&client.request_modern("tools/call", no, &all())), json!(["declined"]));
}

#[test]
fn state_is_valid_once_for_its_call_unmodified() {
    let world = World::new();
    let mut client = Client::start(serving(&world, CONTRACT_CLIENT));
    let asked = steps(json!([{"ask": [form("who")]}]));
    let other = steps(json!([{"ask": [form("who")]}, "supported"]));
    let (_, state) = round(&mut client, &asked);
    let yes = json!({"who": filled("Ada")});
    let mut refused = |params: Value| {
        let answer = client.request_modern("tools/call", params, &all());
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    };
    refused(with(other, Some(&state), yes.clone()));
    refused(with(asked.clone(), Some(&format!("{state}-TAMPERED")), yes.clone()));
    let used = with(asked, Some(&state), yes);
    assert_eq!(
        done(&client.request_modern("tools/call", used.clone(), &all())),
        json!([[{"name": "Ada"}]])
    );
    let again = client.request_modern("tools/call", used, &all());
    assert_eq!(again["error"]["code"], -32602, "{again}");
}

#[test]
fn plugin_asking_differently_on_repetition_fails() {
    let world = World::new();
    let mut client = Client::start(serving(&world, CONTRACT_CLIENT));
    let asked = steps(json!(["ask_anew"]));
    let (_, state) = round(&mut client, &asked);
    let answer = client.request_modern(
        "tools/call",
        with(asked, Some(&state), json!({"anew": filled("Ada")})),
        &all(),
    );
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(text(&answer).contains("it asked something else than before"), "{answer}");
}

#[test]
fn rounds_without_answers_are_bounded() {
    let world = World::new();
    let mut client = Client::start(serving(&world, CONTRACT_CLIENT));
    let asked = steps(json!([{"ask": [form("who")]}]));
    let (_, mut state) = round(&mut client, &asked);
    for _ in 1..8 {
        state = round(&mut client, &with(asked.clone(), Some(&state), json!({}))).1;
    }
    let answer = client.request_modern(
        "tools/call",
        with(asked, Some(&state), json!({"who": filled("Ada")})),
        &all(),
    );
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("8 times"), "{answer}");
}

#[test]
fn confirmed_call_is_confirmed_once_by_a_person() {
    let world = World::new();
    let mut client = Client::start(serving(&world, CONTRACT_CLIENT));
    let params =
        json!({"steps": [{"ask": [form("who")]}, {"write": "a.txt"}, {"ask": [form("late")]}]});
    let asked = call("ask_and_write", params);
    let yes =
        json!({"palisade.confirm": {"action": "accept", "content": {"decision": "allow_once"}}});
    // An unrequested confirmation is ignored, and an answer to the plugin is not a confirmation.
    let mut early = yes.clone();
    early["who"] = filled("Ada");
    let (requests, state) = round(&mut client, &with(asked.clone(), None, early));
    assert_eq!(keys(&requests), ["palisade.confirm"]);
    let (requests, state) = round(&mut client, &with(asked.clone(), Some(&state), yes.clone()));
    assert_eq!(keys(&requests), ["who"]);
    assert_eq!(world.read("a.txt"), None);
    let last = client.request_modern(
        "tools/call",
        with(asked.clone(), Some(&state), json!({"who": filled("Ada")})),
        &all(),
    );
    assert_eq!(done(&last), json!([[{"name": "Ada"}], "written", "too late"]));
    assert_eq!(world.read("a.txt").as_deref(), Some("written"));
    // The confirmation is used up by its call.
    let (requests, state) = round(&mut client, &asked);
    assert_eq!(keys(&requests), ["palisade.confirm"]);
    let (requests, _) =
        round(&mut client, &with(asked, Some(&state), json!({"who": filled("Ada")})));
    assert_eq!(keys(&requests), ["palisade.confirm"]);
}
