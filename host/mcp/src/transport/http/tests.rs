//! Tests of both lifecycles over in-memory connections, with a paused clock.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod callers;
mod world;

use crate::http::Caller;
use crate::sessions::{CallerSessions, Sessions};
use palisade::sandbox::limits::Limits;
use palisade::tool::budget::Budget;
use rmcp::transport::streamable_http_server::SessionManager as _;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use world::{TOKEN, World, call, initialize, stateless};

#[tokio::test(start_paused = true)]
async fn both_lifecycles_are_answered_side_by_side() {
    let world = World::new();
    let session = world.session().await;
    let (headers, body) = stateless("quick");
    let mut answer = world.send("POST", &headers, &body).await;
    assert_eq!((answer.status(), answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.body().await["result"]["content"][0]["text"], "done");
    let mut answer = world.call(&session, 1, "quick").await;
    assert_eq!((answer.status(), answer.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(answer.event().await.unwrap()["result"]["content"][0]["text"], "done");
    assert_eq!(answer.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn invalid_message_gets_a_protocol_error() {
    let world = World::new();
    let ping = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"a":{params}}}}}"#)
    };
    for (body, code, id) in [
        ("[]".to_owned(), -32600, json!(null)),
        ("{".to_owned(), -32700, json!(null)),
        (r#"{"id":1,"id":2}"#.to_owned(), -32600, json!(null)),
        ("3".to_owned(), -32600, json!(null)),
        (ping(r#"1,"a":2"#), -32600, json!(7)),
        (ping(&format!("{}{}", "[".repeat(100), "]".repeat(100))), -32600, json!(7)),
        (ping(r#""\ud800""#), -32700, json!(7)),
        (ping("1e400"), -32700, json!(7)),
    ] {
        let mut answer = world.send("POST", &[], &body).await;
        let status = answer.status();
        let answer = answer.body().await;
        assert_eq!(
            (status, answer["error"]["code"].as_i64(), &answer["id"]),
            (400, Some(code), &id),
            "{body}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn plain_text_rejection_becomes_a_json_error() {
    let world = World::new();
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let unknown = [("mcp-protocol-version", "1999-01-01")];
    let page = [("accept", "text/html")];
    for (method, headers, body, id, status) in [
        ("POST", &unknown[..], ping, json!(7), 400),
        ("POST", &[], ping, json!(7), 400),
        ("POST", &page, ping, json!(7), 406),
        ("GET", &unknown, "", json!(null), 400),
        ("GET", &page, "", json!(null), 406),
        ("DELETE", &[], "", json!(null), 400),
    ] {
        let mut answer = world.send(method, headers, body).await;
        assert_eq!(
            (answer.status(), answer.header("content-type")),
            (status, Some("application/json")),
            "{method}"
        );
        let body = answer.body().await;
        let error =
            (body["id"] == id, &body["error"]["code"], body["error"]["message"].is_string());
        assert_eq!(error, (true, &json!(-32600), true), "{method}: {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_session_is_not_found() {
    let world = World::new();
    let session = world.session().await;
    let delete = [("mcp-session-id", session.as_str())];
    assert_eq!(world.send("DELETE", &delete, "").await.status(), 204);
    assert_eq!(world.send("DELETE", &delete, "").await.status(), 404);
    assert_eq!(world.call(&session, 1, "quick").await.status(), 404);
    assert_eq!(world.send("GET", &delete, "").await.status(), 404);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_session_cancels_its_calls() {
    let mut world = World::new();
    let session = world.session().await;
    let mut answer = world.call(&session, 1, "wait").await;
    assert_eq!(world.told().await, "started");
    world.send("DELETE", &[("mcp-session-id", session.as_str())], "").await;
    assert_eq!(answer.event().await, None);
    assert_eq!(world.told().await, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_stateless_client_that_goes_away_takes_its_call_along() {
    let mut world = World::new();
    let (headers, body) = stateless("wait");
    let began = Instant::now();
    let gone = timeout(Duration::from_millis(10), world.send("POST", &headers, &body)).await;
    assert!(gone.is_err(), "there is no answer yet");
    assert_eq!((world.told().await, world.told().await), ("started", "cancelled"));
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_stateful_client_that_does_not_come_back_within_five_seconds_takes_its_call_along() {
    let mut world = World::new();
    let session = world.session().await;
    let answer = world.call(&session, 1, "wait").await;
    assert_eq!(world.told().await, "started");
    let gone = Instant::now();
    drop(answer);
    assert_eq!(world.told().await, "cancelled");
    assert_eq!(gone.elapsed().as_secs(), 5);
    // The id can be used again.
    assert_eq!(world.call(&session, 1, "quick").await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_stateful_client_that_comes_back_finds_its_call_going_on() {
    let mut world = World::new();
    let session = world.session().await;
    let mut answer = world.call(&session, 1, "wait").await;
    assert_eq!(world.told().await, "started");
    let place = answer.first_place().await;
    drop(answer);
    sleep(Duration::from_secs(4)).await;
    let back = [("mcp-session-id", session.as_str()), ("last-event-id", place.as_str())];
    let mut answer = world.send("GET", &back, "").await;
    sleep(Duration::from_secs(60)).await;
    world.go.notify_one();
    assert_eq!(answer.event().await.unwrap()["result"]["content"][0]["text"], "done");
    assert_eq!(answer.event().await, None);
    assert!(world.told.try_recv().is_err(), "nothing was cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_stateful_client_that_comes_back_is_told_what_was_said_meanwhile() {
    let mut world = World::new();
    let session = world.session().await;
    let mut answer = world.call(&session, 1, "wait").await;
    assert_eq!(world.told().await, "started");
    let place = answer.first_place().await;
    drop(answer);
    sleep(Duration::from_secs(1)).await;
    world.go.notify_one();
    sleep(Duration::from_secs(3)).await;
    let back = [("mcp-session-id", session.as_str()), ("last-event-id", place.as_str())];
    let mut answer = world.send("GET", &back, "").await;
    assert_eq!(answer.event().await.unwrap()["result"]["content"][0]["text"], "done");
    assert_eq!(answer.event().await, None);
    // The response is not sent twice.
    assert_eq!(world.send("GET", &back, "").await.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn repeated_messages_count_in_the_account_of_each_request() {
    let mut world = World::new();
    let session = world.session().await;
    let mut answer = world.call(&session, 1, "wait").await;
    assert_eq!(world.told().await, "started");
    let (_, _, account) = world.seen.recv().await.unwrap();
    // The call holds more for its response than another request may hold.
    let most = Limits::default().memory + (24 << 20);
    let account = account.unwrap();
    account.owe(most);
    let place = answer.first_place().await;
    drop(answer);
    world.go.notify_one();
    sleep(Duration::from_secs(1)).await;
    let back = [("mcp-session-id", session.as_str()), ("last-event-id", place.as_str())];
    assert_eq!(world.send("GET", &back, "").await.event().await, None, "there is no memory");
    Budget::release(&account, most);
    let mut answer = world.send("GET", &back, "").await;
    assert_eq!(answer.event().await.unwrap()["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn session_has_64_concurrent_calls_with_unique_ids() {
    let world = World::new();
    let session = world.session().await;
    let mut open = vec![world.call(&session, 1, "wait").await];
    let mut twice = world.call(&session, 1, "quick").await;
    assert_eq!(twice.status(), 400);
    let body = twice.body().await;
    assert_eq!((&body["id"], &body["error"]["code"]), (&json!(1), &json!(-32600)));
    for id in 2..=64 {
        open.push(world.call(&session, id, "wait").await);
    }
    let busy = world.call(&session, 65, "quick").await;
    assert_eq!((busy.status(), busy.header("retry-after")), (429, Some("1")));
    world.go.notify_waiters();
    for answer in &mut open {
        assert!(answer.event().await.is_some() && answer.event().await.is_none());
    }
    assert_eq!(world.call(&session, 1, "quick").await.status(), 200);
}

/// Returns a session in use.
async fn in_use(world: &World) -> String {
    let session = world.session().await;
    assert_eq!(world.call(&session, 1, "quick").await.event_text().await, "done");
    session
}

#[tokio::test(start_paused = true)]
async fn oldest_of_64_idle_sessions_is_evicted() {
    let world = World::new();
    let first = in_use(&world).await;
    for _ in 1..64 {
        in_use(&world).await;
    }
    let full = world.initialize().await;
    assert_eq!((full.status(), full.header("retry-after")), (503, Some("1")));
    sleep(Duration::from_secs(9)).await;
    assert_eq!(world.call(&first, 1, "quick").await.event_text().await, "done");
    sleep(Duration::from_secs(2)).await;
    in_use(&world).await;
    assert_eq!(
        world.call(&first, 2, "quick").await.status(),
        200,
        "it was not the one that was left longest"
    );
    assert_eq!(world.initialize().await.status(), 200, "the others have been left as long");
}

#[tokio::test(start_paused = true)]
async fn new_sessions_evict_no_session_in_use() {
    let world = World::new();
    let mine = in_use(&world).await;
    let old = world.session().await;
    for _ in 0..300 {
        sleep(Duration::from_millis(1)).await;
        assert_eq!(world.initialize().await.status(), 200);
    }
    let other = in_use(&world).await;
    assert_eq!(
        world.call(&old, 2, "quick").await.status(),
        404,
        "of those that have only begun, there are so many"
    );
    for session in [mine, other] {
        assert_eq!(world.call(&session, 2, "quick").await.event_text().await, "done");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_in_use_are_not_evicted() {
    let world = World::new();
    let mut open = Vec::new();
    for _ in 0..64 {
        let session = world.session().await;
        open.push(world.send("GET", &[("mcp-session-id", session.as_str())], "").await);
    }
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.initialize().await.status(), 503);
    open.pop();
    sleep(Duration::from_secs(20)).await;
    assert_eq!(world.initialize().await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn idle_session_expires_after_five_minutes() {
    let mut world = World::new();
    let session = world.session().await;
    let mut answer = world.call(&session, 1, "wait").await;
    assert_eq!(world.told().await, "started");
    sleep(Duration::from_secs(3600)).await;
    world.go.notify_one();
    assert_eq!(answer.event_text().await, "done");
    sleep(Duration::from_secs(299)).await;
    assert_eq!(world.call(&session, 2, "quick").await.event_text().await, "done");
    sleep(Duration::from_secs(301)).await;
    assert_eq!(world.call(&session, 3, "quick").await.status(), 404);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_delays_no_other_client() {
    let world = World::new();
    let deaf = world.session().await;
    let other = world.session().await;
    let stalled = world.call(&deaf, 1, "talk").await;
    // By then, all buffers between the call and its client are full.
    sleep(Duration::from_secs(10)).await;
    let mute = timeout(Duration::from_secs(10), world.call(&deaf, 2, "quick")).await;
    assert!(mute.is_err(), "the session itself is held up");
    let begun = Instant::now();
    for id in 1..100 {
        assert_eq!(world.call(&other, id, "quick").await.event_text().await, "done");
    }
    assert_eq!(world.session().await.len(), 36);
    assert!(begun.elapsed().is_zero(), "the others wait for nothing");
    sleep(Duration::from_secs(20)).await;
    let begun = Instant::now();
    assert_eq!(world.call(&deaf, 3, "quick").await.event_text().await, "done");
    assert!(begun.elapsed().is_zero());
    drop(stalled);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_streams_and_cancels_calls() {
    let mut world = World::new();
    let session = world.session().await;
    let mut listening = world.send("GET", &[("mcp-session-id", session.as_str())], "").await;
    let mut calling = world.call(&session, 1, "wait").await;
    assert_eq!(world.told().await, "started");
    let begun = Instant::now();
    world.stop.cancel();
    assert_eq!((listening.event().await, calling.event().await), (None, None));
    assert!(begun.elapsed().is_zero());
    assert_eq!(world.told().await, "cancelled");
    assert!(begun.elapsed() <= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn session_is_visible_only_to_its_creator() {
    let sessions = Sessions::default();
    let caller = |text: &str| Caller::Bearer(blake3::hash(text.as_bytes()));
    let seen = |caller| CallerSessions::new(&sessions, caller, Limits::default().account());
    let (id, _transport) = seen(caller("one")).create_session().await.unwrap();
    assert!(seen(caller("one")).has(&id));
    for other in [caller("another"), Caller::Unauthenticated] {
        let view = seen(other);
        assert!(!view.has(&id));
        assert!(view.create_standalone_stream(&id).await.is_err());
        view.close_session(&id).await.unwrap();
    }
    assert!(seen(caller("one")).has(&id), "nobody else can end it");
}

#[tokio::test(start_paused = true)]
async fn handler_knows_caller_and_session() {
    let mut world = World::with(Some(TOKEN));
    let bearer = Caller::Bearer(blake3::hash(TOKEN.as_bytes()));
    let authorization = format!("Bearer {TOKEN}");
    let (mut headers, body) = stateless("quick");
    headers.push(("authorization", &authorization));
    world.send("POST", &headers, &body).await;
    assert!(
        matches!(world.seen.recv().await.unwrap(), (Some(caller), None, _) if caller == bearer)
    );
    let begun = world.send("POST", &[("authorization", &authorization)], &initialize()).await;
    let session = begun.header("mcp-session-id").unwrap();
    let headers = [("authorization", authorization.as_str()), ("mcp-session-id", session)];
    world.send("POST", &headers, &call(1, "wait").to_string()).await;
    let (Some(caller), Some(seat), _) = world.seen.recv().await.unwrap() else {
        panic!("both are known")
    };
    assert_eq!((caller, &*seat.id, seat.ended.is_cancelled()), (bearer, session, false));
    world.send("DELETE", &headers, "").await;
    assert!(seat.ended.is_cancelled(), "at once");
}

#[tokio::test(start_paused = true)]
async fn session_requires_the_token() {
    let world = World::with(Some(TOKEN));
    assert_eq!(world.initialize().await.status(), 401);
    let authorization = format!("Bearer {TOKEN}");
    assert_eq!(
        world.send("POST", &[("authorization", &authorization)], &initialize()).await.status(),
        200
    );
}
