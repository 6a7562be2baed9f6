//! Health, readiness and metrics.

use super::world::{CLIENT, OPERATOR, Sender, World};
use serde_json::{Value, json};

#[tokio::test]
async fn server_is_ready_until_it_drains() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    assert_eq!(world.get(&Sender::Nobody, "/healthz").await.text(), "ok\n");
    let ready = world.get(&Sender::Nobody, "/readyz").await;
    assert_eq!(ready.status, 200);
    let journal = json!({"state": "ok", "lost": 0, "detail": null});
    assert_eq!((&ready.json()["status"], &ready.json()["journal"]), (&json!("ready"), &journal));
    world.server.drain();
    let ready = world.get(&Sender::Nobody, "/readyz").await;
    assert_eq!((ready.status.as_u16(), &ready.json()["status"]), (503, &json!("draining")));
    let call = json!({"tool": "calculate", "input": {"expression": "1"}});
    for (path, body) in [("/sessions/s1/calls", call), ("/sessions", json!({}))] {
        let refused = world.post(&CLIENT, path, body).await;
        assert_eq!(refused.problem(), (503, "draining".to_owned()), "{path}");
    }
    world.server.drained().await;
}

#[tokio::test]
async fn server_is_not_ready_without_its_journal() {
    let world = World::new();
    world.server.journal().clone().close();
    let ready = world.get(&Sender::Nobody, "/readyz").await;
    assert_eq!((ready.status.as_u16(), &ready.json()["status"]), (503, &json!("degraded")));
    assert_eq!(ready.json()["journal"]["state"], "failing");
    // The reason may name a path of the server.
    for sender in [Sender::Nobody, CLIENT] {
        assert_eq!(world.get(&sender, "/readyz").await.json()["journal"]["detail"], Value::Null);
    }
    let detail = &world.get(&OPERATOR, "/readyz").await.json()["journal"]["detail"];
    assert!(detail.is_string(), "{detail}");
}

#[tokio::test]
async fn calls_are_counted_by_tool_class_and_outcome() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let calls = [
        ("calculate", json!({"expression": "1"})),
        ("read_file", json!({"path": "../x"})),
        ("write_file", json!({"path": "a", "content": "x"})),
        ("made_up\"} 1\n", json!({})),
    ];
    for (tool, input) in calls {
        let call = json!({"tool": tool, "input": input});
        world.post(&CLIENT, "/sessions/s1/calls", call).await;
    }
    let metrics = world.get(&OPERATOR, "/metrics").await;
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = metrics.text();
    for line in [
        r#"palisade_calls_total{tool="calculate",class="none",outcome="succeeded"} 1"#,
        r#"palisade_calls_total{tool="read_file",class="read",outcome="permission_denied"} 1"#,
        r#"palisade_calls_total{tool="other",class="unknown",outcome="not_found"} 1"#,
        r#"palisade_denials_total{reason="workspace"} 1"#,
        r#"palisade_denials_total{reason="no_confirmer"} 1"#,
        r#"palisade_call_duration_seconds_count{tool="calculate",class="none"} 1"#,
        "palisade_sessions_open 1",
        "palisade_event_readers 0",
        "palisade_journal_events_lost 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
    assert!(!text.contains("made_up"));
    let reader = world.events(&OPERATOR, "/events").await;
    let text = world.get(&OPERATOR, "/metrics").await;
    assert!(text.text().contains("palisade_operators_attached 1\n"));
    drop(reader);
}

#[tokio::test]
async fn plugins_are_shown_with_what_their_sandboxes_hold() {
    let world = World::new();
    let plugins = world.get(&OPERATOR, "/plugins").await.json();
    let files = plugins["items"].as_array().unwrap().iter().find(|it| it["name"] == "files");
    let files = files.unwrap();
    let write = files["tools"].as_array().unwrap().iter().find(|it| it["name"] == "write_file");
    assert_eq!(write.unwrap()["class"], "write");
    assert!(write.unwrap()["sandbox"].as_str().unwrap().contains("read-write"));
    assert!(files["digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(!files["imports"].as_array().unwrap().is_empty());
    assert_eq!(plugins["rejected"], json!([]));
    let plugins = world.get(&CLIENT, "/plugins").await.json();
    assert_eq!(plugins["rejected"], Value::Null);
    let tools = world.get(&CLIENT, "/tools?limit=2").await.json();
    assert_eq!((tools["items"].as_array().unwrap().len(), &tools["next_cursor"]), (2, &json!("2")));
}
