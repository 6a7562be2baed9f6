//! A refusal tells a client what it can do, and nothing about a command line or settings that it
//! does not have.

use super::world::{CLIENT, OPERATOR, Sender, World};
use palisade::policy::{Mode, Policy};
use palisade::{Allowed, HostBuilder, Places, SideEffects};
use palisade_server::Attached;
use serde_json::{Value, json};

/// A host as the program has it: its advice is for who runs the program.
fn program(host: HostBuilder) -> HostBuilder {
    host.places(Places::new("in palisade.toml"))
}

fn world(prepare: impl FnOnce(HostBuilder) -> HostBuilder) -> World {
    World::with(Attached::WhileWatched, |host| prepare(program(host)), |settings| settings)
}

async fn error(world: &World, sender: &Sender, session: Value, call: Value) -> Value {
    let opened = world.post(sender, "/sessions", session).await;
    assert_eq!(opened.status, 201, "{opened:?}");
    let path = format!("/sessions/{}/calls", opened.json()["id"].as_str().unwrap());
    world.post(sender, &path, call).await.json()["error"].clone()
}

#[track_caller]
fn tells(error: &Value, reason: &str, words: &[&str]) {
    assert_eq!(error["detail"]["reason"], reason, "{error}");
    let message = error["message"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "{message}");
    }
    for word in ["--", "palisade", "tools.only", "confirm.", ".toml", "`HostBuilder"] {
        assert!(!message.contains(word), "`{word}`: {message}");
    }
}

fn write() -> Value {
    json!({"tool": "write_file", "input": {"path": "a", "content": "x"}})
}

#[tokio::test]
async fn call_that_nobody_was_asked_about_names_the_console() {
    let world = world(|host| host);
    let mut events = world.events(&CLIENT, "/events").await;
    for sender in [CLIENT, OPERATOR] {
        let refused = error(&world, &sender, json!({}), write()).await;
        tells(&refused, "no_confirmer", &["ask the operator", "while the console is open"]);
    }
    let failed = events.until("tool.failed").await.data;
    let message = failed["message"].as_str().unwrap();
    assert!(!message.contains("--") && message.contains("nobody can be asked"), "{message}");
}

#[tokio::test]
async fn refusal_by_the_session_itself_names_the_session() {
    let world = world(|host| host);
    let read = json!({"tool": "read_file", "input": {"path": "a"}});
    let only = json!({"tools": ["calculate"]});
    let refused = error(&world, &CLIENT, only, read.clone()).await;
    tells(&refused, "not_allowed", &["the tools of this session", "open a session whose `tools`"]);
    let denies = json!({"policy": {"read": "deny"}});
    let refused = error(&world, &CLIENT, denies, read.clone()).await;
    tells(&refused, "policy", &["the `policy` of this session denies it"]);
    let asks = json!({"policy": {"read": "prompt"}});
    let refused = error(&world, &CLIENT, asks, read).await;
    tells(&refused, "no_confirmer", &["the `policy` of this session asks"]);
}

#[tokio::test]
async fn refusal_by_the_host_names_the_operator() {
    let deny = Policy::default().with_class(SideEffects::Write, Mode::Deny);
    let denying = world(|host| host.policy(deny));
    let refused = error(&denying, &CLIENT, json!({}), write()).await;
    tells(&refused, "policy", &["the policy denies", "ask the operator of this server"]);
    let few = world(|host| host.allow(Allowed::Only(vec!["read_file".to_owned()])));
    let refused = error(&few, &CLIENT, json!({}), write()).await;
    tells(&refused, "not_allowed", &["may be called here", "ask the operator of this server"]);
}

#[tokio::test]
async fn other_failures_advise_on_the_request() {
    let world = world(|host| host);
    let unknown = json!({"tool": "xyzzy", "input": {}});
    let refused = error(&world, &CLIENT, json!({}), unknown.clone()).await;
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with("GET /sessions/ID/definitions has the tools of the session"));
    world.session(&CLIENT, "s1").await;
    let function = json!({"name": "write_file", "arguments": write()["input"].to_string()});
    let call = json!({"id": "a", "type": "function", "function": function});
    let reply = json!({"reply": {"role": "assistant", "content": null, "tool_calls": [call]}});
    let answer = world.post(&CLIENT, "/sessions/s1/replies", reply).await.json();
    tells(&answer["results"][0]["error"], "no_confirmer", &["while the console is open"]);
}
