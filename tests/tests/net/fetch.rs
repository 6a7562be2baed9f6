//! Requests of a guest: those that are granted arrive, and no others.

use super::Granted;
use super::server::Server;
use palisade::{CallMode, Host};
use palisade_tests::World;
use palisade_tests::guest::NET_FETCH;
use serde_json::{Value, json};

/// Calls a tool of the guest, and returns its result.
pub(super) async fn call(host: &Host, tool: &str, input: Value) -> Value {
    host.call(tool, input, json!({})).await.to_json()
}

/// Returns the page of a successful result.
fn page(result: &Value) -> Value {
    assert_eq!(result["success"], true, "{result}");
    serde_json::from_str(result["output"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn granted_request_arrives_in_both_call_modes() {
    let server = Server::echo();
    let input = json!({"authority": server.authority(), "path": "/a?b=c", "headers": ["x-own: 1"]});
    for mode in [CallMode::InPlace, CallMode::OWN_THREADS] {
        let rules = [server.rule("GET")];
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let granted = Granted { rules: &rules, ..Granted::default() };
        let stage = granted.stage_with(|builder| builder.call_mode(mode));
        let fetched = page(&call(&stage.host, "send_read", input.clone()).await);
        assert_eq!(fetched["status"], 200);
        let body = fetched["body"].as_str().unwrap();
        assert!(body.starts_with("GET /a?b=c HTTP/1.1\r\n") && body.contains("x-own: 1"), "{body}");
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn class_bounds_what_is_granted() {
    let server = Server::echo();
    let rules = [server.rule("GET,POST")];
    let stage = Granted { rules: &[&rules[0]], ..Granted::default() }.stage();
    for (tool, method, arrives) in [
        ("send_none", "GET", false),
        ("send_read", "GET", true),
        ("send_read", "POST", false),
        ("send_network", "POST", true),
        ("send_network", "DELETE", false),
    ] {
        let before = server.requests().len();
        let input = json!({"authority": server.authority(), "method": method, "body": ""});
        let result = call(&stage.host, tool, input).await;
        let arrived = server.requests().len() > before;
        assert_eq!(
            (result["success"] == true, arrived),
            (arrives, arrives),
            "{tool} {method}: {result}"
        );
        if !arrives {
            let message = result["error"]["message"].as_str().unwrap();
            let says = if method == "DELETE" { "no grant allows DELETE" } else { "sends no" };
            assert!(message.contains(says), "{message}");
        }
    }
}

#[tokio::test]
async fn refusal_says_what_would_be_accepted() {
    let server = Server::echo();
    let stage = Granted { rules: &["GET https://api.example.org"], ..Granted::default() }.stage();
    let result = call(&stage.host, "send_read", json!({"authority": server.authority()})).await;
    let message = result["error"]["message"].as_str().unwrap();
    let grant = format!("`palisade grant PLUGIN net \"GET http://{}\"`", server.authority());
    assert!(message.contains("HttpRequestDenied") && message.contains(&grant), "{message}");
    assert!(message.contains("no_rule"), "{message}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn body_of_a_request_arrives() {
    let server = Server::echo();
    let rules = [server.rule("POST")];
    let stage = Granted { rules: &[&rules[0]], ..Granted::default() }.stage();
    let body = "0123456789".repeat(2_000);
    let input = json!({"authority": server.authority(), "method": "POST", "body": body});
    page(&call(&stage.host, "send_network", input).await);
    // Without the lines between the chunks.
    let requests = server.requests();
    let (_, sent) = requests[0].split_once("\r\n\r\n").unwrap();
    let sent: String = sent.split("\r\n").filter(|line| line.len() > 4).collect();
    assert_eq!(sent, body);
}

#[tokio::test]
async fn parts_of_a_request_that_is_not_sent_are_bounded() {
    let stage = Granted { rules: &["GET https://example.org"], ..Granted::default() }.stage();
    for (length, accepted) in [
        (64, [3, 3, 3, 3]),
        (65, [0, 0, 3, 3]),
        (512, [0, 0, 3, 3]),
        (513, [0, 0, 0, 3]),
        (16_000, [0, 0, 0, 3]),
        (70_000, [0, 0, 0, 0]),
    ] {
        let input = json!({"requests": 3, "length": length, "header": 16_000});
        let kept = page(&call(&stage.host, "keep", input).await);
        let parts = ["method", "scheme", "authority", "path"];
        assert_eq!(parts.map(|part| kept[part].as_u64().unwrap()), accepted, "{length}");
        assert!(kept["body"].as_u64().unwrap() <= 3 * (24 << 10), "{length}: {kept}");
    }
    let input = json!({"requests": 1, "length": 1, "header": 17_000});
    let result = call(&stage.host, "keep", input).await;
    assert_eq!(result["error"]["class"], "execution_error", "{result}");
}

#[tokio::test]
async fn variable_of_the_host_is_seen_only_if_granted() {
    let server = Server::echo();
    let rules = [server.rule("GET")];
    let granted = Granted { rules: &[&rules[0]], environment: &["GREETING"], ..Granted::default() };
    let stage = granted.stage();
    for (name, value) in [("GREETING", "hello"), ("PLANTED", "unset"), ("PATH", "unset")] {
        let result = call(&stage.host, "variable", json!({"authority": name})).await;
        assert_eq!(result["output"], value, "{name}");
    }
}

#[test]
fn plugin_without_a_grant_is_rejected_and_told_how() {
    let world = World::new();
    let builder = palisade_tests::host_builder().workspace(world.root());
    let host = builder.plugins(NET_FETCH.directory()).build().unwrap();
    let rejected = host.rejected();
    assert_eq!(rejected.len(), 1);
    assert!(rejected[0].reason.contains("palisade grant"), "{}", rejected[0].reason);
}
