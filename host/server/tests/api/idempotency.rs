//! A repeated request with the same key runs once.

use super::world::{CLIENT, OPERATOR, OTHER, World};
use palisade_server::Attached;
use serde_json::{Value, json};
use std::sync::Arc;

const KEY: [(&str, &str); 1] = [("idempotency-key", "k-1")];

fn write(content: &str) -> Value {
    json!({"id": "a", "tool": "write_file", "input": {"path": "a", "content": content}})
}

fn world() -> Arc<World> {
    Arc::new(World::with(Attached::Always, |host| host, |settings| settings))
}

#[tokio::test]
async fn repeated_request_gets_the_first_answer() {
    let world = world();
    world.session(&CLIENT, "s1").await;
    let begin = |content: &str| {
        let (world, body) = (world.clone(), write(content));
        tokio::spawn(
            async move { world.post_with(&CLIENT, "/sessions/s1/calls", &KEY, body).await },
        )
    };
    let first = begin("x");
    let question = world.question().await;
    assert_eq!(begin("x").await.unwrap().problem(), (409, "idempotency_key_in_flight".to_owned()));
    world.answer(&OPERATOR, &question, "allow").await;
    let first = first.await.unwrap();
    std::fs::remove_file(world.at("a")).unwrap();
    let second = begin("x").await.unwrap();
    assert_eq!(second.body, first.body);
    assert_eq!(world.read("a"), None, "it has not run again");
    assert_eq!(begin("y").await.unwrap().problem(), (422, "idempotency_key_reused".to_owned()));
}

#[tokio::test]
async fn key_belongs_to_its_client_and_session() {
    let world = World::new();
    for (sender, session) in [(CLIENT, "s1"), (CLIENT, "s2"), (OTHER, "s3")] {
        world.session(&sender, session).await;
        let body = json!({"tool": "calculate", "input": {"expression": session.replace('s', "")}});
        let path = format!("/sessions/{session}/calls");
        let answer = world.post_with(&sender, &path, &KEY, body).await;
        assert_eq!(answer.status, 200, "{session}");
    }
}

#[tokio::test]
async fn call_of_a_client_who_left_is_not_run_again() {
    let world = world();
    world.session(&CLIENT, "s1").await;
    let mut events = world.events(&OPERATOR, "/events").await;
    let running = {
        let world = world.clone();
        tokio::spawn(async move {
            world.post_with(&CLIENT, "/sessions/s1/calls", &KEY, write("x")).await
        })
    };
    world.question().await;
    running.abort();
    events.until("tool.failed").await;
    let again = async {
        loop {
            let answer = world.post_with(&CLIENT, "/sessions/s1/calls", &KEY, write("x")).await;
            if answer.status == 200 {
                return answer.json();
            }
            assert_eq!(answer.problem().1, "idempotency_key_in_flight");
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(again.await["error"]["class"], "cancelled");
}

#[tokio::test]
async fn key_that_is_no_key_is_refused() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let body = json!({"tool": "calculate", "input": {"expression": "1"}});
    let long = "x".repeat(256);
    for key in ["", "a b", "é", &long] {
        let headers = [("idempotency-key", key)];
        let answer = world.post_with(&CLIENT, "/sessions/s1/calls", &headers, body.clone()).await;
        assert_eq!(answer.problem(), (400, "header_invalid".to_owned()), "{key}");
    }
}
