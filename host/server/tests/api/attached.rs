//! A session that something else than the API has opened is a session like any other, but for its
//! calls, which come their own way.

use super::world::{Answer, CLIENT, OPERATOR, OTHER, Sender, World};
use palisade::{Call, Session};
use palisade_server::AttachedSession;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A session of the client `agent`, and how often it was ended.
struct Attached {
    session: Session,
    ended: Arc<AtomicUsize>,
}

/// Attaches a session whose client names itself with this title. When it is ended, it is closed and
/// detached, as an MCP server does.
fn attach(world: &World, id: &str, title: &str) -> Attached {
    let session = world.server.host().new_session(id).build();
    let ended = Arc::new(AtomicUsize::new(0));
    let (count, closed, server) = (ended.clone(), session.clone(), world.server.clone());
    let end = move || {
        count.fetch_add(1, Ordering::SeqCst);
        closed.close();
        server.detach(closed.id().unwrap());
    };
    let attached = AttachedSession::new(session.clone(), "mcp-http", end);
    world.server.attach(attached.client("agent").title(title).protocol("2025-11-25"));
    Attached { session, ended }
}

/// Makes a call, and returns true if it succeeds.
async fn calculates(world: &World, session: &Session) -> bool {
    let call = Call::new("calculate", json!({"expression": "1"}));
    world.server.host().dispatch(session, call).await.is_success()
}

/// Returns a session as it is shown, once the journal has everything before.
async fn shown(world: &World, sender: &Sender, id: &str) -> Value {
    world.server.journal().flush().await;
    world.get(sender, &format!("/sessions/{id}")).await.json()
}

async fn post(world: &World, sender: &Sender, id: &str, what: &str) -> Answer {
    world.post(sender, &format!("/sessions/{id}/{what}"), json!({})).await
}

#[tokio::test]
async fn attached_session_is_listed_and_shown_to_its_client_and_operators() {
    let world = World::new();
    world.session(&OTHER, "theirs").await;
    let Attached { session, .. } = attach(&world, "mcp-1", "suite 1.0");
    assert!(calculates(&world, &session).await);
    world.server.journal().flush().await;
    for (sender, listed) in
        [(&OPERATOR, &["mcp-1", "theirs"][..]), (&CLIENT, &["mcp-1"]), (&OTHER, &["theirs"])]
    {
        let all = world.get(sender, "/sessions").await.json();
        let items = all["items"].as_array().unwrap().iter();
        let ids: Vec<_> = items.map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!(ids, listed, "{sender:?}");
    }
    for sender in [&OPERATOR, &CLIENT] {
        let shown = shown(&world, sender, "mcp-1").await;
        for (key, value) in [
            ("client", json!("suite 1.0")),
            ("client_id", json!("agent")),
            ("origin", json!("mcp-http")),
            ("protocol", json!("2025-11-25")),
            ("state", json!("open")),
            ("calls", json!(1)),
        ] {
            assert_eq!(shown[key], value, "{sender:?} {shown}");
        }
    }
    assert_eq!(world.get(&OTHER, "/sessions/mcp-1").await.problem().0, 404);
    let calls = world.get(&OPERATOR, "/calls?session=mcp-1").await.json();
    let call = &calls["items"][0];
    assert_eq!((&call["client"], &call["client_name"]), (&json!("agent"), &json!("suite 1.0")));
    let page = format!("/calls/{}", call["id"].as_str().unwrap());
    let page = world.get(&OPERATOR, &page).await.json();
    assert_eq!(page["client_name"], "suite 1.0", "{page}");
    let call = json!({"tool": "calculate", "input": {"expression": "1"}});
    world.post(&OTHER, "/sessions/theirs/calls", call).await;
    world.server.journal().flush().await;
    let calls = world.get(&OPERATOR, "/calls?session=theirs").await.json();
    assert_eq!(calls["items"][0]["client_name"], Value::Null, "it claims no name: {calls}");
}

#[tokio::test]
async fn events_of_an_attached_session_are_its_clients() {
    let world = World::new();
    let Attached { session, .. } = attach(&world, "mcp-1", "suite 1.0");
    let mut mine = world.events(&CLIENT, "/events?after=0").await;
    let opened = mine.until("session.opened").await.data;
    assert_eq!((&opened["title"], &opened["origin"]), (&json!("suite 1.0"), &json!("mcp-http")));
    assert!(calculates(&world, &session).await);
    assert_eq!(mine.until("tool.completed").await.data["session_id"], "mcp-1");
    post(&world, &OPERATOR, "mcp-1", "close").await;
    assert_eq!(mine.until("session.closed").await.data["session_id"], "mcp-1");
    assert_eq!(world.get(&OTHER, "/sessions/mcp-1/events").await.problem().0, 404);
}

#[tokio::test]
async fn attached_session_is_cancelled_and_closed_by_those_who_see_it() {
    let world = World::new();
    for (sender, id) in [(&OPERATOR, "mcp-1"), (&CLIENT, "mcp-2")] {
        let Attached { session, ended } = attach(&world, id, "suite 1.0");
        for what in ["cancel", "close"] {
            assert_eq!(post(&world, &OTHER, id, what).await.problem().0, 404);
        }
        assert_eq!(post(&world, sender, id, "cancel").await.json()["cancelled"], 0);
        assert_eq!(post(&world, sender, id, "close").await.status, 204);
        let view = shown(&world, sender, id).await;
        assert_eq!(view["state"], "closed", "{view}");
        assert!(view["closed_at"].is_string() && !calculates(&world, &session).await, "{view}");
        drop(session);
        assert_eq!(post(&world, sender, id, "close").await.problem().0, 404);
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn calls_of_an_attached_session_do_not_come_over_the_api() {
    let world = World::new();
    let _attached = attach(&world, "mcp-1", "suite 1.0");
    let missing = (404, "session_not_found".to_owned());
    let call = json!({"tool": "calculate", "input": {"expression": "1"}});
    for sender in [&CLIENT, &OPERATOR] {
        let made = world.post(sender, "/sessions/mcp-1/calls", call.clone()).await;
        assert_eq!(made.problem(), missing, "{sender:?}");
        let reply = world.post(sender, "/sessions/mcp-1/replies", json!({"reply": {}})).await;
        assert_eq!(reply.problem(), missing, "{sender:?}");
    }
}

#[tokio::test]
async fn attached_sessions_take_no_place_of_those_that_the_api_opens() {
    let world = World::with(
        palisade_server::Attached::WhileWatched,
        |host| host,
        |settings| settings.sessions_per_caller(1),
    );
    let _attached = [attach(&world, "mcp-1", "one"), attach(&world, "mcp-2", "two")];
    world.session(&CLIENT, "s1").await;
    let full = world.post(&CLIENT, "/sessions", json!({})).await;
    assert_eq!(full.problem(), (429, "too_many_sessions".to_owned()));
}

#[tokio::test]
async fn name_that_a_client_claims_is_one_visible_line() {
    let world = World::new();
    let hostile = format!("<b>operator</b>\u{202e}\u{1b}[31m\n{}", "x".repeat(10_000));
    let _attached = attach(&world, "mcp-1", &hostile);
    let _unnamed = attach(&world, "mcp-2", " \n");
    let name = shown(&world, &OPERATOR, "mcp-1").await["client"].as_str().unwrap().to_owned();
    assert!(name.starts_with("<b>operator</b>") && name.len() < 1_000, "{name}");
    assert!(!name.contains(['\n', '\u{202e}', '\u{1b}']), "{name:?}");
    assert_eq!(shown(&world, &OPERATOR, "mcp-2").await["client"], "agent", "then by its id");
}

#[tokio::test]
async fn session_that_only_its_calls_tell_of_has_a_page() {
    let world = World::new();
    let session = world.server.host().new_session("embedded").build();
    for _ in 0..2 {
        assert!(calculates(&world, &session).await);
    }
    let live = shown(&world, &OPERATOR, "embedded").await;
    assert_eq!((&live["state"], &live["calls"]), (&json!("open"), &json!(2)), "{live}");
    assert_eq!(live["origin"], "unknown", "{live}");
    drop(session);
    let over = shown(&world, &OPERATOR, "embedded").await;
    assert_eq!((&over["state"], over["closed_at"].is_string()), (&json!("closed"), true), "{over}");
    let mut events = world.events(&OPERATOR, "/sessions/embedded/events?after=0").await;
    events.until("tool.completed").await;
    assert_eq!(world.get(&CLIENT, "/sessions/embedded").await.problem().0, 404);
    assert_eq!(world.get(&OPERATOR, "/sessions/none").await.problem().0, 404);
}

#[tokio::test]
async fn all_sessions_are_closed_with_the_server() {
    let world = World::new();
    let Attached { session, ended } = attach(&world, "mcp-1", "suite 1.0");
    world.session(&CLIENT, "s1").await;
    world.server.close_sessions();
    for id in ["mcp-1", "s1"] {
        assert_eq!(shown(&world, &OPERATOR, id).await["state"], "closed", "{id}");
    }
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    assert!(!calculates(&world, &session).await);
}
