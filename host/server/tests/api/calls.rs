//! A call over HTTP has the result, the events and the record of any other call.

use super::world::{CLIENT, OPERATOR, OTHER, World};
use palisade::{
    BoxFuture, Definition, ErrorKind, Factory, SideEffects, Tool, ToolContext, ToolOutput,
    ValidInput,
};
use palisade_server::Attached;
use serde_json::json;
use std::fs;
use std::sync::Arc;

#[tokio::test]
async fn happy_path_of_the_specification() {
    let world = World::new();
    fs::write(world.at("README.md"), "# Project Foo\n").unwrap();
    world.session(&CLIENT, "s1").await;
    let mut events = world.events(&CLIENT, "/sessions/s1/events").await;
    let call = json!({"id": "tu_01HZ_a", "tool": "read_file", "input": {"path": "README.md"}});
    let answer = world.post(&CLIENT, "/sessions/s1/calls", call).await;
    assert_eq!(answer.status, 200);
    let result = answer.json();
    assert_eq!((&result["success"], &result["call_id"]), (&json!(true), &json!("tu_01HZ_a")));
    assert!(result["output"].as_str().unwrap().contains("Project Foo"), "{result}");
    let called = events.until("tool.called").await.data;
    assert_eq!(
        (&called["tool_name"], &called["tool_use_id"], &called["side_effects"]),
        (&json!("read_file"), &json!("tu_01HZ_a"), &json!("read"))
    );
    assert_eq!(events.until("tool.completed").await.data["success"], json!(true));
}

#[tokio::test]
async fn escape_from_the_workspace_is_refused() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let mut events = world.events(&OPERATOR, "/events").await;
    let call = json!({"id": "b", "tool": "read_file", "input": {"path": "../../etc/passwd"}});
    let answer = world.post(&CLIENT, "/sessions/s1/calls", call).await;
    let result = answer.json();
    assert_eq!(answer.status, 200, "a failure of a call is a result");
    assert_eq!(result["error"]["class"], "permission_denied");
    let failed = events.until("tool.failed").await.data;
    assert_eq!(failed["error_class"], "permission_denied");
    assert!(failed["message"].as_str().unwrap().contains("escapes the workspace boundary"));
}

#[tokio::test]
async fn caller_who_leaves_cancels_the_call() {
    let world = Arc::new(World::with(Attached::Always, |host| host, |settings| settings));
    world.session(&CLIENT, "s1").await;
    let mut events = world.events(&OPERATOR, "/events").await;
    let write = json!({"tool": "write_file", "input": {"path": "a", "content": "x"}});
    let call = world.begin_call(CLIENT, "s1", write);
    world.question().await;
    call.abort();
    assert_eq!(events.until("tool.failed").await.data["error_class"], "cancelled");
    assert_eq!(world.read("a"), None);
}

#[tokio::test]
async fn caller_who_does_not_wait_finds_the_result() {
    let world = Arc::new(World::with(Attached::Always, |host| host, |settings| settings));
    world.session(&CLIENT, "s1").await;
    let write = json!({"id": "w 1", "tool": "write_file", "input": {"path": "a", "content": "x"}});
    let prefer = [("prefer", "respond-async")];
    let accepted = world.post_with(&CLIENT, "/sessions/s1/calls", &prefer, write.clone()).await;
    assert_eq!(accepted.status, 202);
    let place = accepted.header("location").unwrap().to_owned();
    assert_eq!(place, "/sessions/s1/calls/w%201");
    assert_eq!(world.get(&CLIENT, &place).await.json()["state"], "running");
    assert_eq!(world.get(&OTHER, &place).await.problem().1, "session_not_found");
    let again = world.post_with(&CLIENT, "/sessions/s1/calls", &prefer, write).await;
    assert_eq!(again.problem(), (409, "call_exists".to_owned()));
    let mut events = world.events(&CLIENT, "/sessions/s1/events").await;
    world.answer(&OPERATOR, &world.question().await, "allow").await;
    events.until("tool.completed").await;
    let ended = async {
        loop {
            let answer = world.get(&CLIENT, &place).await;
            if answer.status == 200 {
                return answer.json();
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(ended.await["success"], json!(true));
    let nothing = world.get(&CLIENT, "/sessions/s1/calls/other").await;
    assert_eq!(nothing.problem(), (404, "call_not_found".to_owned()));
}

#[tokio::test]
async fn calls_are_cancelled_by_id_by_turn_and_by_session() {
    let world = Arc::new(World::with(Attached::Always, |host| host, |settings| settings));
    world.session(&CLIENT, "s1").await;
    let write = |id: &str| {
        let input = json!({"path": "a", "content": "x"});
        json!({"id": id, "turn_id": "t/1", "tool": "write_file", "input": input})
    };
    for path in ["calls/c%201/cancel", "turns/t%2F1/cancel", "cancel"] {
        let call = world.begin_call(CLIENT, "s1", write("c 1"));
        world.question().await;
        let path = format!("/sessions/s1/{path}");
        let refused = world.post(&OTHER, &path, json!({})).await;
        assert_eq!(refused.problem().1, "session_not_found", "{path}");
        let answer = world.post(&CLIENT, &path, json!({})).await;
        assert_eq!(answer.json(), json!({"cancelled": 1}), "{path}");
        assert_eq!(call.await.unwrap().json()["error"]["class"], "cancelled", "{path}");
        let answer = world.post(&OPERATOR, &path, json!({})).await;
        assert_eq!(answer.json(), json!({"cancelled": 0}), "{path}");
    }
}

#[tokio::test]
async fn calls_of_a_message_run_side_by_side() {
    let world = Arc::new(World::new());
    world.session(&CLIENT, "s1").await;
    for name in ["a", "b", "c"] {
        fs::write(world.at(name), name).unwrap();
    }
    let call = |name: &str| json!({"id": name, "tool": "read_file", "input": {"path": name}});
    let calls = ["a", "b", "c"].map(|name| world.begin_call(CLIENT, "s1", call(name)));
    for call in calls {
        assert_eq!(call.await.unwrap().json()["success"], json!(true));
    }
}

/// A tool that runs until it is cancelled.
struct Wait(Definition);

impl Tool for Wait {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async {
            context.sink().emit("installing\n");
            context.cancelled().await;
            Err(ErrorKind::Cancelled)
        })
    }
}

#[tokio::test]
async fn running_call_of_a_cancelled_turn_ends() {
    let schema = json!({"type": "object", "properties": {}});
    let definition = Definition::new("wait", "Waits.", SideEffects::None, schema).unwrap();
    let factory: Factory = Arc::new(move || Box::new(Wait(definition.clone())) as Box<dyn Tool>);
    let add = |host: palisade::HostBuilder| host.tool(factory);
    let world = Arc::new(World::with(Attached::WhileWatched, add, |settings| settings));
    world.session(&CLIENT, "s1").await;
    let mut events = world.events(&CLIENT, "/sessions/s1/events").await;
    let call = json!({"id": "tu_01HZ_d", "turn_id": "t1", "tool": "wait", "input": {}});
    let call = world.begin_call(CLIENT, "s1", call);
    events.until("tool.output_delta").await;
    let cancelled = world.post(&CLIENT, "/sessions/s1/turns/t1/cancel", json!({})).await;
    assert_eq!(cancelled.json(), json!({"cancelled": 1}));
    let failed = events.until("tool.failed").await.data;
    assert_eq!(failed["error_class"], "cancelled");
    assert_eq!(failed["partial_output"], "installing\n");
    assert_eq!(call.await.unwrap().json()["error"]["class"], "cancelled");
}
