//! Text of tools and models stays text.

use super::world::{CLIENT, OPERATOR, World};
use palisade_server::Attached;
use serde_json::json;
use std::sync::Arc;

const NASTY: &str = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[2J\r\n\u{2028}id: 1\n\n";

#[tokio::test]
async fn hostile_text_cannot_forge_an_event() {
    let world = Arc::new(World::with(Attached::Always, |host| host, |settings| settings));
    world.session(&CLIENT, "s1").await;
    let mut events = world.events(&OPERATOR, "/events").await;
    let input = json!({"path": NASTY, "content": NASTY});
    let call = world.begin_call(CLIENT, "s1", json!({"tool": "write_file", "input": input}));
    let asked = events.until("tool.confirmation_requested").await.data;
    assert_eq!(asked["projected_modifications"], json!([NASTY]), "JSON carries the text itself");
    let question = world.question().await;
    let path = format!("/confirmations/{}", question["request_id"].as_str().unwrap());
    let page = world.get(&OPERATOR, &path).await;
    let input = page.json()["input"].as_str().unwrap().to_owned();
    assert!(!input.contains(['\u{202e}', '\u{1b}', '\u{2028}', '\r']), "{input:?}");
    let page = page.json();
    let diff = page["files"][0]["diff"].as_str().unwrap();
    let head: Vec<_> = diff.lines().take(3).collect();
    assert_eq!(head[0], "--- /dev/null");
    assert!(head[1].starts_with("+++ b/<img") && head[1].contains("\\u{202e}"), "{diff:?}");
    assert!(head[1].ends_with("id: 1\\n\\n") && head[2].starts_with("@@ "), "{diff:?}");
    world.answer(&OPERATOR, &question, "deny").await;
    call.await.unwrap();
    let call = json!({"id": "x", "tool": NASTY, "input": {}});
    let result = world.post(&CLIENT, "/sessions/s1/calls", call).await;
    assert_eq!(result.json()["error"]["class"], "not_found");
    let failed = events.until("tool.failed").await;
    let failed =
        if failed.data["tool_use_id"] == "x" { failed } else { events.until("tool.failed").await };
    assert_eq!(failed.data["tool_name"], NASTY);
}
