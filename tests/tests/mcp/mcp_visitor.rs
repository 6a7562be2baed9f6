//! Documents and prompts that come and go with their plugin: clients find them, and hear of it.

use super::legacy_of;
use palisade_tests::guest::MCP_VISITOR;
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::fs;

/// The names in a list.
fn names(answer: &Value, list: &str) -> Vec<String> {
    let items = answer["result"][list].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_a_plugin_offers_comes_and_goes_with_it_and_clients_are_told() {
    let world = World::new();
    let program = Program::new(&world).args(["--no-builtin", "--plugins"]).args([world.plugins()]);
    let mut client = legacy_of(program, &["--watch"]);
    assert!(names(&client.ask("prompts/list", &json!({})), "prompts").is_empty());
    let there = world.plugins().join("visitor.wasm");
    let made = world.outer().join("made");
    fs::copy(MCP_VISITOR.file(), &made).unwrap();
    fs::rename(made, &there).unwrap();
    for list in ["tools", "resources", "prompts"] {
        client.hear_of(&format!("notifications/{list}/list_changed"));
    }
    assert_eq!(names(&client.ask("prompts/list", &json!({})), "prompts"), ["greet_the_visitor"]);
    assert_eq!(names(&client.ask("resources/list", &json!({})), "resources"), ["card"]);
    let read = client.ask("resources/read", &json!({"uri": "visit://card"}));
    assert_eq!(read["result"]["contents"][0]["text"], "a card", "{read}");
    fs::remove_file(there).unwrap();
    client.hear_of("notifications/prompts/list_changed");
    assert!(names(&client.ask("prompts/list", &json!({})), "prompts").is_empty());
    assert!(client.ask("resources/read", &json!({"uri": "visit://card"}))["error"].is_object());
}
