//! A planted secret is searched for everywhere, and found at the server alone.

use super::Granted;
use super::server::{Server, ok};
use palisade_net::Secret;
use serde_json::{Value, json};
use std::io::Write as _;

/// The secret. No other text has it.
pub(super) const PLANTED: &str = "planted-se/cret+7f3a";

/// Returns the bytes to search the guest's memory for.
fn search() -> Vec<u8> {
    PLANTED.bytes().map(|byte| byte.wrapping_add(1)).collect()
}

#[tokio::test]
async fn planted_secret_is_nowhere_but_at_its_server() {
    let server = Server::start(|request, stream| {
        // The server repeats the secret in the body, in a header, and in a text that no HTTP is.
        let answer = match request.contains("GET /broken") {
            true => format!("{PLANTED} is no HTTP").into_bytes(),
            false => ok(request.as_bytes()),
        };
        let _ = stream.write_all(&answer);
    });
    let secret = Secret::parse("PLANTED", "localhost", "Authorization: Bearer").unwrap();
    let rules = [server.rule("GET")];
    let granted = Granted { rules: &[&rules[0]], secrets: vec![secret], ..Granted::default() };
    let stage = granted.stage();
    let mut shown = String::new();
    for path in ["/", "/broken"] {
        let input = json!({"authority": server.authority(), "path": path, "search": search()});
        let result = stage.host.call("send_read", input, json!({})).await.to_json();
        if path == "/" {
            let page: Value = serde_json::from_str(result["output"].as_str().unwrap()).unwrap();
            assert_eq!(page["found"], 0, "the guest's memory has the secret");
            assert!(page["body"].as_str().unwrap().contains("Bearer [redacted]"), "{page}");
        }
        shown.push_str(&result.to_string());
    }
    for event in stage.recorder.events() {
        shown.push_str(&format!("{event:?}"));
    }
    shown.push_str(&format!("{:?}", stage.host.plugins()));
    for plugin in stage.host.plugins() {
        shown.push_str(&plugin.grants().join(" "));
    }
    assert!(!shown.contains("planted"), "{shown}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].contains(&format!("authorization: Bearer {PLANTED}\r\n")), "{requests:?}");
}

#[tokio::test]
async fn search_of_the_memory_finds_what_is_there() {
    let server = Server::echo();
    let rules = [server.rule("GET")];
    let stage = Granted { rules: &[&rules[0]], ..Granted::default() }.stage();
    let path = "/a-text-in-the-body-9c1e";
    let searched: Vec<u8> = path.bytes().map(|byte| byte.wrapping_add(1)).collect();
    let input = json!({"authority": server.authority(), "path": path, "search": searched});
    let result = stage.host.call("send_read", input, json!({})).await.to_json();
    let page: Value = serde_json::from_str(result["output"].as_str().unwrap()).unwrap();
    assert!(page["found"].as_u64().unwrap() > 0, "{page}");
}
