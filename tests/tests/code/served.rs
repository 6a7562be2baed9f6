//! `palisade serve --code-mode`, over MCP of both lifecycles.

use palisade_tests::mcp::Client;
use palisade_tests::{Program, World};
use serde_json::{Value, json};

pub(super) fn client(world: &World) -> Client {
    Client::start_with(Program::new(world), &["--code-mode"])
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

pub(super) fn run(code: &str) -> Value {
    json!({"name": "run_js", "arguments": {"code": code}})
}

pub(super) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

pub(super) const FORMS: &str = r#"{"elicitation": {}}"#;

#[test]
fn client_is_shown_programs_in_place_of_tools() {
    let world = World::new();
    world.file("a.txt", "found");
    let mut client = client(&world).shake_hands(&json!({}));
    let listed = client.request("tools/list", &json!({}));
    assert_eq!(names(&listed), ["run_js", "search_tools"]);
    let tools = &listed["result"]["tools"];
    let description = tools[0]["description"].as_str().unwrap();
    assert!(description.contains("read_file(input: {"), "{description}");
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], false);
    let answer = client.request("tools/call", &run("return tools.read_file({path: 'a.txt'})"));
    assert_eq!(text(&answer), "found");
    let direct = json!({"name": "read_file", "arguments": {"path": "a.txt"}});
    let refused = client.request("tools/call", &direct);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn write_of_a_program_is_asked_during_the_call() {
    let world = World::new();
    let mut client = client(&world).shake_hands(&serde_json::from_str(FORMS).unwrap());
    let code = "tools.write_file({path: 'x.txt', content: 'x'}); return 'done'";
    let id = client.begin("tools/call", &run(code));
    let question = client.receive_method("elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("`write_file`"), "{message}");
    assert!(
        message.contains(r#"Called by another tool: run_js (plugin code), at "line 1""#),
        "{message}"
    );
    assert!(world.read("x.txt").is_none());
    let accepted = json!({"action": "accept", "content": {"decision": "allow_once"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted}));
    assert_eq!(text(&client.answer(id)), "done");
    assert_eq!(world.read("x.txt").as_deref(), Some("x"));
}

/// A text that a program evaluates has lines of its own.
#[test]
fn question_names_no_line_that_the_program_has_made_up() {
    let world = World::new();
    let mut client = client(&world).shake_hands(&serde_json::from_str(FORMS).unwrap());
    for code in [
        "\neval('\\n'.repeat(98) + \"tools.write_file({path: 'x', content: 'x'})\")",
        "\nnew Function('\\n'.repeat(98) + \"tools.write_file({path: 'x', content: 'x'})\")()",
    ] {
        let id = client.begin("tools/call", &run(code));
        let question = client.receive_method("elicitation/create");
        let message = question["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("Called by another tool: run_js (plugin code), at \"line 2\"\n"),
            "{message}"
        );
        let declined =
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
        client.send(&declined);
        let _ = client.answer(id);
    }
}

#[test]
fn write_of_a_program_is_refused_to_a_client_that_cannot_ask() {
    let world = World::new();
    let mut client = client(&world);
    let code =
        "try { tools.write_file({path: 'x.txt', content: 'x'}) } catch (e) { return e.class }";
    let answer = client.request_modern("tools/call", run(code), &json!({}));
    assert_eq!(text(&answer), "permission_denied", "{answer}");
    assert!(world.read("x.txt").is_none());
    let listed = client.request_modern("tools/list", json!({}), &json!({}));
    assert_eq!(names(&listed), ["run_js", "search_tools"]);
}

#[test]
fn cancelled_request_ends_its_program_and_the_call_in_it() {
    let world = World::new();
    let mut client = client(&world).shake_hands(&json!({}));
    let id = client.begin("tools/call", &run("for (;;) tools.calculate({expression: '1'})"));
    client.notify("notifications/cancelled", &json!({"requestId": id}));
    let ping = client.request("ping", &json!({}));
    assert_eq!(ping["result"], json!({}));
    assert_eq!(text(&client.request("tools/call", &run("return 'next'"))), "next");
}
