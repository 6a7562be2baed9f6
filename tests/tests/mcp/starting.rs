//! A server whose plugins still compile: it answers at once, and announces them as they come.

use super::call;
use palisade_tests::mcp::Client;
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CHANGED: &str = "notifications/tools/list_changed";
/// The time after which clients give up on a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn server_with_a_cold_cache_answers_at_once_and_announces_its_tools() {
    let world = World::new();
    world.file("a.txt", "found");
    let cold = world.outer().join("cache");
    let mut client = Client::start(Program::new(&world).env("PALISADE_CACHE", &cold));
    let start = Instant::now();
    let answer = client.initialize(palisade_tests::mcp::LEGACY, &json!({}));
    assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true, "{answer}");
    let listed = client.request("tools/list", &json!({}));
    let took = start.elapsed();
    assert!(took < PATIENCE, "{took:?}");
    assert!(names(&listed).contains(&"shell"), "known tools are listed: {listed}");
    let compiling = &listed["result"]["_meta"]["dev.palisade/compiling"];
    assert!(compiling.is_array(), "the others are named: {listed}");
    let mut listed = listed;
    while !names(&listed).contains(&"read_file") {
        client.receive_method(CHANGED);
        listed = client.request("tools/list", &json!({}));
    }
    let answer = client.request("tools/call", &call("read_file", json!({"path": "a.txt"})));
    assert_eq!(super::text(&answer), "found");
}

#[test]
fn call_of_a_compiling_tool_waits_for_it() {
    let world = World::new();
    world.file("a.txt", "found");
    let cold = world.outer().join("cache");
    let mut client = Client::legacy(Program::new(&world).env("PALISADE_CACHE", &cold), &json!({}));
    let answer = client.request("tools/call", &call("read_file", json!({"path": "a.txt"})));
    assert_eq!(super::text(&answer), "found");
}
