//! A server with `--answers operator`: no form of a client and no answer of it counts, and its
//! write waits for the operator.

use crate::mcp_client::{KINDS, Kind, McpClient};
use palisade_tests::World;
use palisade_tests::api::{Api, until};
use palisade_tests::program::Program;
use serde_json::{Value, json};

const ONLY_OPERATOR: [&str; 3] = ["--console", "--answers", "operator"];

#[test]
fn client_with_forms_gets_no_form_and_waits_for_the_operator() {
    let world = World::new();
    let api = Api::start(&world, &ONLY_OPERATOR);
    for (kind, decision) in KINDS.into_iter().flat_map(|kind| [(kind, "allow"), (kind, "deny")]) {
        let path = format!("{kind:?}-{decision}.txt");
        let client = McpClient::with_forms(&api, kind);
        // The client also sends the answer that a form would have got.
        let accepted = json!({"action": "accept", "content": {"decision": "allow"}});
        let answered = match kind {
            Kind::Stateful => json!({}),
            Kind::Stateless => json!({"inputResponses": {"palisade.confirm": accepted}}),
        };
        let input = json!({"path": path, "content": "written"});
        let call = std::thread::spawn(move || client.call_with("write_file", &input, &answered));
        let mut question = Value::Null;
        until("the question is open", || {
            question = api.operator.get("/confirmations").message()["items"][0].clone();
            question["projected_modifications"] == json!([path])
        });
        assert_eq!(world.read(&path), None);
        assert_eq!(api.operator.decide(&question, decision).status, 200);
        let answer = call.join().unwrap();
        assert!(!answer.body.contains("elicitation/create"), "{answer:?}");
        assert_eq!(answer.message()["result"]["isError"], decision == "deny", "{answer:?}");
        assert_eq!(world.read(&path).is_some(), decision == "allow", "{kind:?}");
    }
}

#[test]
fn refusal_without_an_operator_says_who_answers() {
    let world = World::new();
    let api = Api::start(&world, &["--answers", "operator"]);
    for kind in KINDS {
        let client = McpClient::with_forms(&api, kind);
        let input = json!({"path": "a.txt", "content": "written"});
        let said = client.call("write_file", &input).message().to_string();
        assert!(said.contains("only the operator of this server answers"), "{said}");
        assert!(said.contains("console (`http://") && !said.contains("palisade console"), "{said}");
    }
    assert_eq!(world.read("a.txt"), None);
}

#[test]
fn server_without_a_console_is_refused_at_the_start() {
    let world = World::new();
    let ran = Program::new(&world).args(["serve", "--answers", "operator"]).run();
    ran.stderr_contains(&["--console", "--http"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}
