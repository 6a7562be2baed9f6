//! The worked examples 9.1 to 9.5 of the dispatcher's specification over HTTP: replies and calls
//! in, events by SSE.

use crate::served;
use palisade_tests::World;
use palisade_tests::api::Api;
use palisade_tests::event_stream::EventStream;
use serde_json::{Value, json};
use std::thread::JoinHandle;

/// Returns a reply of a model that calls a tool once for each of these ids.
fn reply(tool: &str, calls: &[(&str, Value)]) -> Value {
    let block = |(id, input): &(&str, Value)| json!({"type": "tool_use", "id": id, "name": tool, "input": input});
    let content: Vec<Value> = calls.iter().map(block).collect();
    let reply = json!({"role": "assistant", "content": content});
    json!({"provider": "anthropic", "turn_id": "t1", "reply": reply})
}

/// Sends a reply on a thread of its own.
fn send(api: &Api, reply: Value) -> JoinHandle<Value> {
    let client = api.client.clone();
    std::thread::spawn(move || {
        let answer = client.post("/sessions/s1/replies", &reply);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.message()
    })
}

/// Returns the blocks that answer the calls of a reply, as the next request to the provider has
/// them.
fn blocks(answer: &Value) -> &Vec<Value> {
    let last = answer["messages"].as_array().and_then(|all| all.last());
    last.and_then(|last| last["content"].as_array()).unwrap_or_else(|| panic!("{answer}"))
}

/// Returns the names of a call's events, and the last one's data.
fn events_of(events: &mut EventStream, id: &str) -> (Vec<String>, Value) {
    let mut names = Vec::new();
    loop {
        let event = events.find(|event| event.json()["tool_use_id"] == id);
        names.push(event.name.clone());
        if ["tool.completed", "tool.failed", "tool.input_invalid"].contains(&&*event.name) {
            return (names, event.json());
        }
    }
}

#[test]
fn example_9_1_happy_path() {
    let world = World::new();
    world.file("README.md", "# Project Foo\n");
    let api = served(&world, &[]);
    let mut events = api.client.events("/sessions/s1/events?after=0");
    let answer = send(&api, reply("read_file", &[("tu_01HZ_a", json!({"path": "README.md"}))]));
    let answer = answer.join().unwrap();
    let block = &blocks(&answer)[0];
    assert_eq!(
        (&block["type"], &block["tool_use_id"]),
        (&json!("tool_result"), &json!("tu_01HZ_a"))
    );
    assert!(block.to_string().contains("# Project Foo"), "{block}");
    assert_ne!(block["is_error"], true, "{block}");
    let (names, completed) = events_of(&mut events, "tu_01HZ_a");
    assert_eq!(names, ["tool.called", "tool.completed"]);
    let seen = (&completed["tool_name"], &completed["side_effects"], &completed["session_id"]);
    assert_eq!(seen, (&json!("read_file"), &json!("read"), &json!("s1")), "{completed}");
}

#[test]
fn example_9_2_workspace_escape_rejection() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut events = api.client.events("/sessions/s1/events?after=0");
    let answer =
        send(&api, reply("read_file", &[("tu_01HZ_b", json!({"path": "../../etc/passwd"}))]));
    let answer = answer.join().unwrap();
    let block = &blocks(&answer)[0];
    assert_eq!(block["is_error"], true, "{block}");
    assert!(block.to_string().contains("escapes the workspace boundary"), "{block}");
    let (names, failed) = events_of(&mut events, "tu_01HZ_b");
    assert_eq!(names, ["tool.failed"]);
    assert_eq!(failed["error_class"], "permission_denied", "{failed}");
}

#[test]
fn example_9_3_user_denied_write() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events");
    let input = json!({"path": "src/auth.ts", "content": "..."});
    let answer = send(&api, reply("write_file", &[("tu_01HZ_c", input)]));
    let asked = events.of_call("tool.confirmation_requested", "tu_01HZ_c");
    assert_eq!(asked["projected_modifications"], json!(["src/auth.ts"]), "{asked}");
    assert_eq!(api.operator.decide(&asked, "deny").status, 200);
    let answer = answer.join().unwrap();
    let block = &blocks(&answer)[0];
    assert_eq!(block["is_error"], true, "{block}");
    assert!(block.to_string().contains("the user denied this operation"), "{block}");
    let (names, failed) = events_of(&mut events, "tu_01HZ_c");
    assert_eq!(names, ["tool.confirmation_resolved", "tool.failed"]);
    assert_eq!(failed["error_class"], "user_denied", "{failed}");
    assert!(world.inside().is_empty());
}

#[test]
fn example_9_4_cancellation_mid_shell() {
    let world = World::new();
    let api = served(&world, &["--allow", "execute"]);
    let mut events = api.client.events("/sessions/s1/events?after=0");
    // A long-running command that ignores SIGTERM.
    let command = "trap '' TERM; echo installing; while :; do sleep 1000; done";
    let answer = send(&api, reply("shell", &[("tu_01HZ_d", json!({"command": command}))]));
    let _ = events.of_call("tool.output_delta", "tu_01HZ_d");
    let cancelled = api.client.post("/sessions/s1/turns/t1/cancel", &json!({}));
    assert_eq!((cancelled.status, cancelled.message()), (200, json!({"cancelled": 1})));
    let answer = answer.join().unwrap();
    let block = &blocks(&answer)[0];
    assert_eq!(block["is_error"], true, "{block}");
    assert!(block.to_string().contains("installing"), "the partial output: {block}");
    let (_, failed) = events_of(&mut events, "tu_01HZ_d");
    assert_eq!(failed["error_class"], "cancelled", "{failed}");
    assert!(failed["partial_output"].as_str().unwrap().contains("installing"), "{failed}");
}

#[test]
fn example_9_5_concurrent_dispatch() {
    let world = World::new();
    let calls = ["e", "f", "g"].map(|name| (format!("tu_01HZ_{name}"), format!("{name}.txt")));
    for (id, file) in &calls {
        world.file(file, id);
    }
    let api = served(&world, &[]);
    let mut events = api.client.events("/sessions/s1/events?after=0");
    let uses: Vec<(&str, Value)> =
        calls.iter().map(|(id, file)| (&**id, json!({"path": file}))).collect();
    let answer = send(&api, reply("read_file", &uses)).join().unwrap();
    // One message answers all three, in the order of the calls.
    let blocks = blocks(&answer);
    let ids: Vec<&str> = blocks.iter().filter_map(|block| block["tool_use_id"].as_str()).collect();
    assert_eq!(ids, ["tu_01HZ_e", "tu_01HZ_f", "tu_01HZ_g"]);
    for (block, (id, _)) in blocks.iter().zip(&calls) {
        assert!(block["content"].to_string().contains(id.as_str()), "{block}");
    }
    let mut names = Vec::new();
    while names.len() < 6 {
        let event = events.find(|event| event.name.starts_with("tool."));
        names.push(event.name);
    }
    for name in ["tool.called", "tool.completed"] {
        assert_eq!(names.iter().filter(|seen| *seen == name).count(), 3, "{names:?}");
    }
}
