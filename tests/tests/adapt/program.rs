//! The program: `adapt`, `--adapt`, `[[adapt]]`, and the other subcommands with adapted components.

use palisade_tests::guest::{ADAPT_DEPOT, LOADER_GOOD};
use palisade_tests::mcp::Client;
use palisade_tests::{Program, World};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The WIT of the depot.
fn wit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/wit/depot")
}

fn program<'w>(world: &'w World, args: &[&str]) -> Program<'w> {
    Program::new(world).args(args.iter().copied())
}

fn depot() -> String {
    ADAPT_DEPOT.file().to_str().unwrap().to_owned()
}

#[test]
fn tools_are_shown_with_what_is_left_out_and_the_configuration() {
    let world = World::new();
    let shown = program(&world, &["adapt", &depot(), "--class", "read"]).run().exits_with(0);
    for part in [
        "echo_same_item",
        "class    read",
        "left out",
        "acme:depot/cells@1.2.0#open",
        "no resource outlives the sandbox of its call",
        "[[adapt]]\n",
        "class = \"read\"\n",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let shown = program(&world, &["adapt", &depot(), "--class", "none", "--json"]).run();
    let shown = shown.exits_with(0).json();
    assert_eq!((&shown["class"], &shown["plugin"]), (&json!("none"), &json!("adapt_depot")));
    assert_eq!(shown["left_out"].as_array().map(Vec::len), Some(4));
    assert!(shown["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "ping"));
}

#[test]
fn shown_tools_on_a_full_disk_are_1() {
    let world = World::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = program(&world, &["adapt", &depot(), "--class", "none"]).stdout(full).run_into();
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.stderr_contains(&["error: cannot write the output", "No space left on device"]);
}

#[test]
fn printed_configuration_serves_the_tools() {
    let world = World::new();
    let wit = wit();
    let args = ["adapt", &depot(), "--class", "none", "--json", "--wit", wit.to_str().unwrap()];
    let shown = program(&world, &args).run().exits_with(0).json();
    world.file("../own.toml", shown["configuration"].as_str().unwrap());
    let own = world.outer().join("own.toml");
    let with = |args: &[&str]| program(&world, args).args(["--config"]).args([&own]);
    let refused = with(&["call", "ping", r#"{"name": "Ada"}"#]).run().exits_with(4);
    refused.stderr_contains(&["is not approved", "palisade approve"]);
    // Its words are more than a terminal shows.
    let shown = with(&["approve", "--json"]).run().exits_with(0).json();
    let digest = shown[0]["digest"].as_str().unwrap();
    let _ = with(&["approve", "--all", "--yes", "--digest", digest]).run().exits_with(0);
    let called = with(&["call", "ping", r#"{"name": "Ada"}"#]).run().exits_with(0);
    assert_eq!(called.stdout, "Ada is here");
    let listed = with(&["list", "--json"]).run().exits_with(0).json();
    let tool = |name: &str| {
        let tools = listed["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap().clone()
    };
    let item = tool("echo_same_item");
    assert_eq!(item["description"], "Returns an item as it is.");
    let properties = &item["parameters"]["properties"]["it"]["properties"];
    assert_eq!(properties["id"]["description"], "Never given twice.");
    assert_eq!(properties["at"]["properties"]["x"]["description"], "Metres to the east.");
    assert_eq!(properties["colour"]["description"], "dark-green: Not light green.");
    assert_eq!(tool("ping")["description"], "Answers.");
    let values = with(&["config", "show"]).run().exits_with(0).stdout;
    assert!(values.contains("adapt_depot.wasm") && values.contains("class = none"), "{values}");
    let inspected = with(&["inspect", "cells_count"]).run().exits_with(0).stdout;
    assert!(inspected.contains("acme:depot/cells@1.2.0#open"), "{inspected}");
    // The same bytes under another class are not what was approved.
    let text = std::fs::read_to_string(&own).unwrap();
    std::fs::write(&own, text.replace("class = \"none\"", "class = \"read\"")).unwrap();
    let refused = with(&["call", "ping", r#"{"name": "Ada"}"#]).run().exits_with(4);
    refused.stderr_contains(&["the class of `", "is read, and was none"]);
}

#[test]
fn wrong_uses_are_refused_with_what_is_accepted() {
    let world = World::new();
    let good = LOADER_GOOD.file();
    let good = good.to_str().unwrap();
    for (args, code, words) in [
        (&["adapt", "missing.wasm", "--class", "none"][..], 3, "there is no file"),
        (&["adapt", good, "--class", "none"], 6, "load it as a plugin"),
        (&["adapt", good, "--class", "all"], 2, "none, read, write, execute"),
        (&["adapt", good], 2, "--class"),
        (&["list", "--adapt", good], 2, "FILE=CLASS"),
        (&["adapt", &depot(), "--class", "none", "--wit", "nowhere"], 2, "nowhere"),
    ] {
        program(&world, args).run().exits_with(code).stderr_contains(&[words]);
    }
    world.file("palisade.toml", "[[adapt]]\nfile = \"/depot.wasm\"\nclass = \"none\"\n");
    program(&world, &["list"]).run().exits_with(2).stderr_contains(&["`adapt` would loosen"]);
}

#[test]
fn component_is_checked_as_its_tools_are_served() {
    let world = World::new();
    let file = depot();
    let checked = |args: &[&str]| {
        let args = [&["check", &file, "--json", "--inputs", "2"], args].concat();
        program(&world, &args).run().json()
    };
    let report = checked(&["--class", "none", "--timeout", "200ms"]);
    assert_eq!(report["world"], "functions of another world, as tools of class none");
    assert!(report["tools"].as_array().unwrap().len() > 10, "{report:#}");
    assert_eq!(checked(&[])["findings"][0]["code"], "no-tools");
}

#[test]
fn client_of_a_server_calls_a_function() {
    let world = World::new();
    let component = format!("{}=none", depot());
    let program = Program::new(&world).args(["--no-builtin", "--adapt", &component]);
    let mut client = Client::legacy(program, &json!({}));
    client.wait_for_tools();
    let listed = client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "echo_same_point").unwrap();
    assert_eq!(tool["outputSchema"]["type"], "object");
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
    let point = json!({"x": 1.5, "y": -2.0});
    let params = json!({"name": "echo_same_point", "arguments": {"at": point}});
    let called = client.request("tools/call", &params);
    assert_eq!(called["result"]["structuredContent"], point);
}

#[test]
fn snippet_for_a_client_keeps_the_components() {
    let world = World::new();
    let component = format!("{}=read", depot());
    let args = ["mcp", "config", "--client", "claude-code", "--adapt", &component];
    let snippet = program(&world, &args).run().exits_with(0).stdout;
    assert!(snippet.contains("--adapt") && snippet.contains("adapt_depot.wasm=read"), "{snippet}");
}
