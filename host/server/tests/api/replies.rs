//! A model's reply goes in, and the messages that answer it come out.

use super::world::{CLIENT, World};
use palisade::{Definition, SideEffects, Tool, ToolContext, ToolOutput};
use palisade_server::Attached;
use serde_json::{Value, json};

fn reply(calls: &[(&str, &str, Value)]) -> Value {
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, name, input)| {
            let function = json!({"name": name, "arguments": input.to_string()});
            json!({"id": id, "type": "function", "function": function})
        })
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

#[tokio::test]
async fn each_call_of_a_reply_is_answered() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let reply = reply(&[
        ("a", "calculate", json!({"expression": "6 * 7"})),
        ("b", "no_such_tool", json!({})),
    ]);
    for reply in [reply.clone(), json!(reply.to_string())] {
        let body = json!({"reply": reply, "turn_id": "t1"});
        let answer = world.post(&CLIENT, "/sessions/s1/replies", body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        let roles: Vec<_> =
            answer["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
        assert_eq!(roles, ["assistant", "tool", "tool"]);
        assert_eq!(answer["messages"][1]["tool_call_id"], "a");
        assert_eq!(answer["messages"][1]["content"], "42");
        assert_eq!(answer["results"][0]["success"], json!(true));
        assert_eq!(answer["results"][1]["error"]["class"], "not_found");
        assert_eq!(answer["stop_loop"], json!(false));
    }
}

#[tokio::test]
async fn reply_of_another_provider_has_its_messages() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let input = json!({"expression": "2 + 2"});
    let content = json!([{"type": "tool_use", "id": "a", "name": "calculate", "input": input}]);
    let reply = json!({"role": "assistant", "content": content});
    let body = json!({"provider": "anthropic", "reply": reply});
    let answer = world.post(&CLIENT, "/sessions/s1/replies", body).await.json();
    let block = &answer["messages"][1]["content"][0];
    assert_eq!((&block["type"], &block["tool_use_id"]), (&json!("tool_result"), &json!("a")));
}

#[tokio::test]
async fn reply_that_cannot_be_read_runs_nothing() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    for reply in [json!("{"), json!(7), json!({"content": "x"})] {
        let body = json!({"reply": reply});
        let answer = world.post(&CLIENT, "/sessions/s1/replies", body).await;
        if answer.status != 200 {
            assert_eq!(answer.problem(), (422, "reply_invalid".to_owned()), "{reply}");
        }
    }
    let body = json!({"provider": "nobody", "reply": {}});
    let answer = world.post(&CLIENT, "/sessions/s1/replies", body).await;
    assert_eq!(answer.problem(), (422, "body_invalid".to_owned()));
}

/// A tool that asks to end the loop.
struct Finish(Definition);

impl Tool for Finish {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: palisade::ValidInput,
        _: &'a ToolContext,
    ) -> palisade::BoxFuture<'a, Result<ToolOutput, palisade::ErrorKind>> {
        Box::pin(async {
            let mut output = ToolOutput::text("done");
            output.metadata.insert("stop_loop".to_owned(), json!(true));
            Ok(output)
        })
    }
}

#[tokio::test]
async fn tool_can_end_the_loop() {
    let schema = json!({"type": "object", "properties": {}});
    let definition = Definition::new("finish", "Ends.", SideEffects::None, schema).unwrap();
    let factory: palisade::Factory =
        std::sync::Arc::new(move || Box::new(Finish(definition.clone())) as Box<dyn Tool>);
    let world = World::with(Attached::WhileWatched, |host| host.tool(factory), |it| it);
    world.session(&CLIENT, "s1").await;
    let body = json!({"reply": reply(&[("a", "finish", json!({}))])});
    let answer = world.post(&CLIENT, "/sessions/s1/replies", body).await.json();
    assert_eq!(answer["stop_loop"], json!(true), "{answer}");
}
