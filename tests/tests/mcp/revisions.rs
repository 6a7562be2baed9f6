//! Messages whose form depends on the client's revision.

use super::http::request;
use super::{call, serving};
use palisade_tests::guest::{CONTRACT_CLIENT, LOADER_GOOD};
use palisade_tests::mcp::{Client, LEGACY};
use palisade_tests::mcp_http::Endpoint;
use palisade_tests::{Program, World};
use serde_json::{Value, json};

/// The revisions before 2025-11-25.
const OLDER: [&str; 2] = ["2025-03-26", "2025-06-18"];

/// Returns the parts of a stream that are events.
fn events(body: &str) -> Vec<&str> {
    let is_event = |part: &&str| part.lines().any(|line| line.starts_with("data:"));
    body.split("\n\n").filter(is_event).collect()
}

fn has_data(event: &&str) -> bool {
    event.lines().any(|line| line.strip_prefix("data:").is_some_and(|data| !data.trim().is_empty()))
}

#[test]
fn stream_begins_with_an_event_without_data_only_since_2025_11_25() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &[]);
    for version in [OLDER[0], OLDER[1], LEGACY] {
        let info = json!({"name": "suite", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        let begun = endpoint.post(&[], &request("initialize", &params));
        let id = begun.header("mcp-session-id").expect("a session");
        let session = ("Mcp-Session-Id", id);
        let message = request("tools/call", &call("good", json!({})));
        let called = endpoint.post(&[session, ("MCP-Protocol-Version", version)], &message);
        assert_eq!(called.message()["result"]["content"][0]["text"], "good", "{called:?}");
        for answer in [&begun, &called] {
            let empty = events(&answer.body).iter().filter(|event| !has_data(event)).count();
            assert_eq!(empty, usize::from(version == LEGACY), "{version}: {answer:?}");
        }
    }
}

/// Returns the form of the server's question to a client of this revision.
fn question(client: &mut Client, version: &str, params: &Value) -> Value {
    let answer = client.initialize(version, &json!({"elicitation": {}}));
    assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
    client.begin("tools/call", params);
    client.receive_method("elicitation/create")["params"]["requestedSchema"].clone()
}

#[test]
fn confirmation_has_the_choices_that_the_revision_knows() {
    let world = World::new();
    let values = json!(["allow_once", "allow_for_session", "deny"]);
    for version in [OLDER[1], LEGACY] {
        let mut client = Client::start(Program::new(&world));
        let write = call("write_file", json!({"path": "a.txt", "content": "a"}));
        let form = question(&mut client, version, &write);
        let field = &form["properties"]["decision"];
        let titled = field["oneOf"].as_array().map(Vec::len);
        match version {
            LEGACY => assert_eq!((titled, field.get("enum")), (Some(3), None), "{form}"),
            _ => {
                assert_eq!((titled, &field["enum"]), (None, &values), "{form}");
                assert_eq!(field["enumNames"].as_array().map(Vec::len), Some(3), "{form}");
            }
        }
    }
}

#[test]
fn plugins_form_has_the_choices_that_the_revision_knows() {
    let world = World::new();
    let choices = json!([{"const": "x", "title": "An x"}, {"const": "y", "title": "A y"}]);
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string", "oneOf": choices}}});
    let params = json!({"message": "Which?", "requestedSchema": schema});
    let ask = json!({"ask": [{"key": "k", "kind": "elicitation", "params": params}]});
    let asking = call("ask", json!({"steps": [ask]}));
    for (version, field) in [
        (LEGACY, json!({"type": "string", "oneOf": choices})),
        (OLDER[1], json!({"type": "string", "enum": ["x", "y"], "enumNames": ["An x", "A y"]})),
    ] {
        let mut client = Client::start(serving(&world, CONTRACT_CLIENT));
        let form = question(&mut client, version, &asking);
        assert_eq!(form["properties"]["a"], field, "{version}");
    }
}
