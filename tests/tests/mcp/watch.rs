//! Tools that change while clients are connected: each client is notified in the form of its
//! revision, and only if its own list differs.

use super::call;
use palisade_tests::mcp::Client;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use serde_json::{Value, json};
use std::fs;

const CHANGED: &str = "notifications/tools/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Starts a client of a program that loads only the plugins of this world. They are compiled before
/// it starts, so that it lists them at once.
fn client(world: &World, options: &[&str]) -> Client {
    let program =
        || Program::new(world).args(["--no-builtin", "--plugins"]).args([world.plugins()]);
    let _ = program().args(["list"]).run().exits_with(0);
    Client::start_with(program(), options)
}

fn legacy(world: &World, options: &[&str]) -> Client {
    client(world, options).shake_hands(&json!({}))
}

fn wat(tool: &str, version: &str) -> Wat {
    Wat::new(Told { description: version.to_owned(), ..Told::new(tool) })
}

/// Returns the listed tools with their versions.
fn listed(answer: &Value) -> Vec<(&str, &str)> {
    let tools =
        answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools: {answer}")).iter();
    tools
        .map(|tool| (tool["name"].as_str().unwrap(), tool["description"].as_str().unwrap()))
        .collect()
}

/// Subscribes, and returns the request id and the accepted notifications.
fn listen(client: &mut Client, wanted: &Value) -> (u64, Value) {
    let params = palisade_tests::mcp::modern(json!({"notifications": wanted}), &json!({}));
    let id = client.begin("subscriptions/listen", &params);
    let answer = client.receive_method(ACKNOWLEDGED);
    assert_eq!(answer["params"]["_meta"][SUBSCRIPTION], id, "{answer}");
    (id, answer["params"]["notifications"].clone())
}

/// Ends a client, and returns the total number of change notifications.
fn told_in_all(client: Client) -> usize {
    let (ran, rest) = client.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    rest.iter().filter(|message| message["method"] == CHANGED).count()
}

#[test]
fn legacy_client_is_notified_and_sees_all_changes() {
    let world = World::new();
    world.install("a", &wat("a", "1").build());
    let mut client = client(&world, &["--watch"]);
    let answer = client.initialize(palisade_tests::mcp::LEGACY, &json!({}));
    assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(listed(&client.request("tools/list", &json!({}))), [("a", "1")]);
    world.install("b", &wat("b", "1").build());
    client.receive_method(CHANGED);
    assert_eq!(listed(&client.request("tools/list", &json!({}))), [("a", "1"), ("b", "1")]);
    assert_eq!(super::text(&client.request("tools/call", &call("b", json!({})))), "done");
    world.install("a", &wat("a", "2").build());
    client.receive_method(CHANGED);
    assert_eq!(listed(&client.request("tools/list", &json!({}))), [("a", "2"), ("b", "1")]);
    fs::remove_file(world.plugins().join("a.wasm")).unwrap();
    client.receive_method(CHANGED);
    assert_eq!(client.request("tools/call", &call("a", json!({})))["error"]["code"], -32602);
    assert_eq!(listed(&client.request("tools/list", &json!({}))), [("b", "1")]);
    assert_eq!(told_in_all(client), 0, "once for each");
}

#[test]
fn change_back_to_a_previous_list_is_a_change() {
    let world = World::new();
    world.install("a", &wat("a", "1").build());
    let mut client = legacy(&world, &["--watch"]);
    assert_eq!(listed(&client.request("tools/list", &json!({}))), [("a", "1")]);
    for _ in 0..2 {
        world.install("b", &wat("b", "1").build());
        client.receive_method(CHANGED);
        fs::remove_file(world.plugins().join("b.wasm")).unwrap();
        client.receive_method(CHANGED);
    }
    assert_eq!(told_in_all(client), 0, "once for each");
}

#[test]
fn modern_client_is_notified_under_each_listen_request() {
    let world = World::new();
    world.install("a", &wat("a", "1").build());
    let mut client = client(&world, &["--watch"]);
    let discovered = client.request_modern("server/discover", json!({}), &json!({}));
    assert_eq!(discovered["result"]["capabilities"]["tools"]["listChanged"], true);
    let (one, accepted) =
        listen(&mut client, &json!({"toolsListChanged": true, "promptsListChanged": true}));
    assert_eq!(accepted, json!({"toolsListChanged": true, "promptsListChanged": true}));
    let (_, accepted) = listen(&mut client, &json!({"promptsListChanged": true}));
    assert_eq!(accepted, json!({"promptsListChanged": true}));
    let (two, _) = listen(&mut client, &json!({"toolsListChanged": true}));
    world.install("b", &wat("b", "1").build());
    let tagged = |client: &mut Client| {
        client.receive_method(CHANGED)["params"]["_meta"][SUBSCRIPTION].as_u64().unwrap()
    };
    let mut heard = [tagged(&mut client), tagged(&mut client)];
    heard.sort_unstable();
    assert_eq!(heard, [one, two]);
    let list = client.request_modern("tools/list", json!({}), &json!({}));
    assert_eq!(
        (listed(&list), &list["result"]["ttlMs"]),
        (vec![("a", "1"), ("b", "1")], &json!(1_000))
    );
    client.notify(
        "notifications/cancelled",
        &palisade_tests::mcp::modern(json!({"requestId": one}), &json!({})),
    );
    fs::remove_file(world.plugins().join("a.wasm")).unwrap();
    assert_eq!(tagged(&mut client), two);
    assert_eq!(told_in_all(client), 0, "cancelled and other subscriptions are not notified");
}

#[test]
fn client_without_listen_request_is_not_notified() {
    let world = World::new();
    let mut silent = client(&world, &["--watch"]);
    silent.request_modern("tools/list", json!({}), &json!({}));
    for tool in ["a", "b"] {
        world.install(tool, &wat(tool, "1").build());
        while silent
            .request_modern("tools/call", call(tool, json!({})), &json!({}))
            .get("error")
            .is_some()
        {}
    }
    assert_eq!(told_in_all(silent), 0);
}

#[test]
fn unchanged_list_causes_no_notification() {
    let world = World::new();
    world.install("a", &wat("a", "1").build());
    let mut client = legacy(&world, &["--watch"]);
    client.request("tools/list", &json!({}));
    world.install("a", &wat("a", "1").execute("(unreachable)").build());
    // Poll until the new code is loaded: no notification announces it.
    while client.request("tools/call", &call("a", json!({})))["result"]["isError"] == false {}
    // A new file with the same bytes.
    world.install("a", &wat("a", "1").execute("(unreachable)").build());
    world.install("b", &wat("b", "1").build());
    client.receive_method(CHANGED);
    assert_eq!(told_in_all(client), 0, "its first message is about the other file");
}

#[test]
fn hundred_quick_changes_are_few_notifications() {
    let world = World::new();
    world.install("a", &wat("a", "0").build());
    let mut client = legacy(&world, &["--watch"]);
    client.request("tools/list", &json!({}));
    for version in 1..=100 {
        world.install("a", &wat("a", &version.to_string()).build());
    }
    let mut words = 0;
    while listed(&client.request("tools/list", &json!({}))) != [("a", "100")] {
        client.receive_method(CHANGED);
        words += 1;
    }
    assert!(words + told_in_all(client) <= 10);
}

#[test]
fn broken_file_keeps_the_tool_and_is_reported_on_stderr() {
    let world = World::new();
    world.install("a", &wat("a", "1").build());
    let mut client = legacy(&world, &["--watch"]);
    client.request("tools/list", &json!({}));
    world.install("a", b"no plugin");
    world.install("b", &wat("b", "1").build());
    client.receive_method(CHANGED);
    assert_eq!(listed(&client.request("tools/list", &json!({}))), [("a", "1"), ("b", "1")]);
    assert_eq!(super::text(&client.request("tools/call", &call("a", json!({})))), "done");
    let (ran, _) = client.end();
    ran.stderr_contains(&[
        "rejected ",
        "a.wasm: ",
        "; the one loaded before stays",
        "loaded ",
        "b.wasm: b",
    ]);
}

#[test]
fn program_without_watch_sends_no_notifications() {
    let world = World::new();
    world.install("a", &wat("a", "1").build());
    let mut still = legacy(&world, &[]);
    let mut watching = legacy(&world, &["--watch"]);
    for client in [&mut still, &mut watching] {
        assert_eq!(listed(&client.request("tools/list", &json!({}))), [("a", "1")]);
    }
    world.install("a", &wat("a", "2").build());
    watching.receive_method(CHANGED);
    assert_eq!(listed(&still.request("tools/list", &json!({}))), [("a", "1")]);
    assert_eq!(told_in_all(still), 0);
    let mut still = client(&world, &[]);
    let discovered = still.request_modern("server/discover", json!({}), &json!({}));
    assert!(discovered["result"]["capabilities"]["tools"].get("listChanged").is_none());
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    assert_eq!(
        still.request_modern("subscriptions/listen", wanted, &json!({}))["error"]["code"],
        -32601
    );
}

#[test]
fn invalid_listen_request_is_refused_with_the_reason() {
    let world = World::new();
    let mut modern = client(&world, &["--watch"]);
    assert_eq!(
        modern.request_modern("subscriptions/listen", json!({}), &json!({}))["error"]["code"],
        -32602
    );
    let mut legacy = legacy(&world, &["--watch"]);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    assert_eq!(legacy.request("subscriptions/listen", &wanted)["error"]["code"], -32601);
}
