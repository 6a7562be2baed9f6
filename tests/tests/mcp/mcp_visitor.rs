//! Resources and prompts that come and go with their plugin: clients list them and are notified.

use super::legacy_of;
use palisade_tests::guest::MCP_VISITOR;
use palisade_tests::mcp::{MODERN, modern};
use palisade_tests::mcp_http::Endpoint;
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};

/// Returns the names in a list.
fn names(answer: &Value, list: &str) -> Vec<String> {
    let items = answer["result"][list].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

/// Installs the visitor plugin with `more` bytes of padding, which change its digest.
fn install(world: &World, more: u8) {
    let mut bytes = fs::read(MCP_VISITOR.file()).unwrap();
    // A custom section: a name, and padding.
    bytes.extend([0, 2 + more, 1, b'x']);
    bytes.extend(vec![0; more.into()]);
    world.install("visitor", &bytes);
}

#[test]
fn subscriber_is_notified_of_replaced_and_removed_plugins() {
    const UPDATED: &str = "notifications/resources/updated";
    let world = World::new();
    install(&world, 0);
    let program =
        || Program::new(&world).args(["--no-builtin", "--plugins"]).args([world.plugins()]);
    let mut client = legacy_of(program(), &["--watch"]);
    let mut other = legacy_of(program(), &["--watch"]);
    let card = json!({"uri": "visit://card"});
    for client in [&mut client, &mut other] {
        assert_eq!(client.request("resources/subscribe", &card)["result"], json!({}));
    }
    let wanted =
        json!({"notifications": {"resourceSubscriptions": ["visit://card", "visit://none"]}});
    let id = client.begin("subscriptions/listen", &modern(wanted, &json!({})));
    let accepted = client.receive_method("notifications/subscriptions/acknowledged");
    let heard = &accepted["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(heard, &json!(["visit://card"]), "{accepted}");
    assert_eq!(other.request("resources/unsubscribe", &card)["result"], json!({}));
    install(&world, 1);
    let mut tags = Vec::new();
    for _ in 0..2 {
        let told = client.receive_method(UPDATED);
        assert_eq!(told["params"]["uri"], "visit://card", "{told}");
        tags.push(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_u64());
    }
    tags.sort_unstable();
    assert_eq!(tags, [None, Some(id)]);
    fs::remove_file(world.plugins().join("visitor.wasm")).unwrap();
    client.receive_method(UPDATED);
    other.receive_method("notifications/resources/list_changed");
    assert!(other.received(UPDATED).is_empty(), "an unsubscribed client is not notified");
}

#[test]
fn subscription_over_http_has_only_the_resources_that_exist() {
    let world = World::new();
    install(&world, 0);
    let program = Program::new(&world).args(["--no-builtin", "--plugins"]).args([world.plugins()]);
    let endpoint = Endpoint::start(program, &["--watch"]);
    let uris = json!(["visit://none", "visit://card", "visit://none/2"]);
    let wanted = modern(json!({"notifications": {"resourceSubscriptions": uris}}), &json!({}));
    let method = "subscriptions/listen";
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": wanted});
    let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
    let answer = BufReader::new(endpoint.begin("POST", &headers, &message.to_string()));
    let mut events = answer
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
    let accepted = events.next().unwrap();
    let heard = &accepted["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(heard, &json!(["visit://card"]), "{accepted}");
    install(&world, 1);
    let told = events.next().unwrap();
    assert_eq!(told["params"]["uri"], "visit://card", "{told}");
}

#[test]
fn offers_follow_their_plugin_and_clients_are_notified() {
    let world = World::new();
    let program = Program::new(&world).args(["--no-builtin", "--plugins"]).args([world.plugins()]);
    let mut client = legacy_of(program, &["--watch"]);
    assert!(names(&client.request("prompts/list", &json!({})), "prompts").is_empty());
    let there = world.plugins().join("visitor.wasm");
    let made = world.outer().join("made");
    fs::copy(MCP_VISITOR.file(), &made).unwrap();
    fs::rename(made, &there).unwrap();
    for list in ["tools", "resources", "prompts"] {
        client.receive_method(&format!("notifications/{list}/list_changed"));
    }
    assert_eq!(
        names(&client.request("prompts/list", &json!({})), "prompts"),
        ["greet_the_visitor"]
    );
    assert_eq!(names(&client.request("resources/list", &json!({})), "resources"), ["card"]);
    let read = client.request("resources/read", &json!({"uri": "visit://card"}));
    assert_eq!(read["result"]["contents"][0]["text"], "a card", "{read}");
    fs::remove_file(there).unwrap();
    client.receive_method("notifications/prompts/list_changed");
    assert!(names(&client.request("prompts/list", &json!({})), "prompts").is_empty());
    assert!(client.request("resources/read", &json!({"uri": "visit://card"}))["error"].is_object());
}
