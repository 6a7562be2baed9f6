//! The calls in the journal are listed with filters, and shown one by one.

use super::world::{CLIENT, OPERATOR, World};
use palisade_server::Attached;
use serde_json::{Value, json};
use std::sync::Arc;

async fn world() -> World {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    world.session(&CLIENT, "s2").await;
    for number in 0..5 {
        let input = json!({"expression": format!("{number} + 1")});
        let call = json!({"id": format!("c{number}"), "tool": "calculate", "input": input});
        world.post(&CLIENT, "/sessions/s1/calls", call).await;
    }
    let read = json!({"id": "r", "turn_id": "t", "tool": "read_file", "input": {"path": "../x"}});
    world.post(&CLIENT, "/sessions/s2/calls", read).await;
    world.server.journal().flush().await;
    world
}

async fn ids(world: &World, query: &str) -> Vec<String> {
    let page = world.get(&OPERATOR, &format!("/calls{query}")).await.json();
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}")).iter();
    items.map(|item| item["call_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn calls_are_listed_with_filters() {
    let world = world().await;
    assert_eq!(ids(&world, "").await, ["r", "c4", "c3", "c2", "c1", "c0"]);
    assert_eq!(ids(&world, "?session=s2").await, ["r"]);
    assert_eq!(ids(&world, "?tool=read_file").await, ["r"]);
    assert_eq!(ids(&world, "?class=read").await, ["r"]);
    assert_eq!(ids(&world, "?outcome=failed").await, ["r"]);
    assert_eq!(ids(&world, "?outcome=permission_denied").await, ["r"]);
    assert_eq!(ids(&world, "?outcome=succeeded&limit=1").await, ["c4"]);
    assert!(ids(&world, "?outcome=open").await.is_empty());
    assert!(ids(&world, "?until=2020-01-01T00:00:00Z").await.is_empty());
    assert_eq!(ids(&world, "?since=2020-01-01T00:00:00Z&q=3%20%2B%201").await, ["c3"]);
    assert_eq!(ids(&world, "?q=WORKSPACE%20boundary").await, ["r"], "in the error's message");
    assert_eq!(ids(&world, "?q=S2").await, ["r"], "in the session's id");
    assert_eq!(ids(&world, "?q=5&tool=calculate").await, ["c4"], "in the output");
    for query in ["?outcome=great", "?class=big", "?since=yesterday", "?limit=500"] {
        let answer = world.get(&OPERATOR, &format!("/calls{query}")).await;
        assert_eq!(answer.problem(), (400, "query_invalid".to_owned()), "{query}");
    }
}

#[tokio::test]
async fn call_page_has_input_output_and_events() {
    let world = world().await;
    let list = world.get(&OPERATOR, "/calls?q=4%20%2B%201").await.json();
    let row = &list["items"][0];
    let page =
        world.get(&OPERATOR, &format!("/calls/{}", row["id"].as_str().unwrap())).await.json();
    assert_eq!((&page["call_id"], &page["state"]), (&json!("c4"), &json!("succeeded")));
    assert_eq!((&page["output"], &page["error"]), (&json!("5"), &Value::Null));
    let input: Value = serde_json::from_str(page["input"].as_str().unwrap()).unwrap();
    assert_eq!(input, json!({"expression": "4 + 1"}));
    let names: Vec<_> =
        page["events"].as_array().unwrap().iter().map(|event| event["name"].clone()).collect();
    assert_eq!(names, ["tool.called", "tool.completed"]);
    assert!(page["usage"]["peak_memory_bytes"].is_u64());
    let by_id = world.get(&OPERATOR, "/calls/r").await.json();
    assert_eq!(by_id["error"]["class"], "permission_denied");
    assert_eq!(by_id["error"].get("detail"), None);
    assert_eq!(by_id["input"], r#"{"path":"../x"}"#, "it was refused before it ran");
    assert_eq!(page["output_other"], json!([]));
    assert_eq!((&by_id["usage"], &by_id["turn_id"]), (&Value::Null, &json!("t")));
    assert_eq!(world.get(&OPERATOR, "/calls/99999").await.problem().1, "call_not_found");
}

#[tokio::test]
async fn waiting_call_is_open() {
    let world = Arc::new(World::with(Attached::Always, |host| host, |settings| settings));
    world.session(&CLIENT, "s1").await;
    let write = json!({"id": "w", "tool": "write_file", "input": {"path": "a", "content": "x"}});
    let call = world.begin_call(CLIENT, "s1", write);
    let question = world.question().await;
    world.server.journal().flush().await;
    assert_eq!(ids(&world, "?outcome=open").await, ["w"]);
    let row = world.get(&OPERATOR, "/calls?outcome=waiting").await.json()["items"][0].clone();
    assert_eq!(row["state"], "waiting");
    assert_eq!(world.question().await["call_key"], row["id"]);
    world.answer(&OPERATOR, &question, "allow").await;
    call.await.unwrap();
    world.server.journal().flush().await;
    let page = world.get(&OPERATOR, "/calls/w").await.json();
    assert_eq!(page["confirmations"][0]["resolution"]["answered_by"], "ana");
    assert_eq!(page["files_modified"], json!(["a"]));
}

#[tokio::test]
async fn summary_counts_outcomes() {
    let world = world().await;
    let summary = world.get(&OPERATOR, "/summary?since=2020-01-01T00:00:00Z").await.json();
    let tools = summary["tools"].as_array().unwrap();
    assert_eq!(tools[0]["tool"], "calculate");
    assert_eq!((&tools[0]["calls"], &tools[0]["outcomes"]), (&json!(5), &json!({"succeeded": 5})));
    assert!(tools[0]["latency_ms"]["p50"].is_number());
    assert_eq!(tools[1]["outcomes"], json!({"permission_denied": 1}));
    assert_eq!((&tools[1]["latency_ms"], &tools[1]["class"]), (&Value::Null, &json!("read")));
}
