//! Events come after they are committed, and a reader continues where it was.

use super::world::{CLIENT, OPERATOR, OTHER, SeenEvent, World};
use http_body_util::BodyExt as _;
use palisade_server::Attached;
use serde_json::json;
use std::time::Duration;

async fn calculate(world: &World, session: &str, count: usize) {
    for number in 0..count {
        let call = json!({"tool": "calculate", "input": {"expression": number.to_string()}});
        let answer = world.post(&CLIENT, &format!("/sessions/{session}/calls"), call).await;
        assert_eq!(answer.status, 200);
    }
}

/// Reads until this many calls have completed.
async fn completed(events: &mut super::world::Events, count: usize) -> Vec<SeenEvent> {
    let mut seen = Vec::new();
    let ends = |seen: &[SeenEvent]| {
        seen.iter().filter(|event: &&SeenEvent| event.name == "tool.completed").count()
    };
    while ends(&seen) < count {
        seen.push(events.next().await.unwrap());
    }
    seen
}

#[tokio::test]
async fn cut_stream_continues_without_loss_or_repetition() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let mut whole = world.events_after(&OPERATOR, "/sessions/s1/events", Some("0")).await;
    let mut cut = world.events(&OPERATOR, "/sessions/s1/events?after=0").await;
    let mut seen = Vec::new();
    calculate(&world, "s1", 20).await;
    let all = completed(&mut whole, 20).await;
    while seen.len() < all.len() {
        // A cut after one, two, … events.
        for _ in 0..=seen.len() % 3 {
            if seen.len() < all.len() {
                seen.push(cut.next().await.unwrap());
            }
        }
        let last = cut.last.take();
        cut = world.events_after(&OPERATOR, "/sessions/s1/events", last.as_deref()).await;
    }
    assert_eq!(seen, all);
    let ids: Vec<u64> =
        all.iter().map(|event| event.id.as_ref().unwrap().parse().unwrap()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[tokio::test]
async fn client_reads_only_events_of_its_own_sessions() {
    let world = World::new();
    world.session(&OTHER, "theirs").await;
    world.session(&CLIENT, "mine").await;
    let mut mine = world.events(&CLIENT, "/events?after=0").await;
    let mut theirs = world.events(&OTHER, "/events?after=0").await;
    calculate(&world, "mine", 3).await;
    for event in completed(&mut mine, 3).await {
        assert_eq!(event.data["session_id"], "mine", "{event:?}");
    }
    let call = json!({"tool": "calculate", "input": {"expression": "1"}});
    world.post(&OTHER, "/sessions/theirs/calls", call).await;
    for event in completed(&mut theirs, 1).await {
        assert_eq!(event.data["session_id"], "theirs", "{event:?}");
    }
}

#[tokio::test]
async fn stream_begins_with_its_place_and_now() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    calculate(&world, "s1", 1).await;
    let mut first = world.events_after(&OPERATOR, "/events", Some("0")).await;
    completed(&mut first, 1).await;
    for path in ["/events", "/events?after=now"] {
        let mut events = world.events(&OPERATOR, path).await;
        calculate(&world, "s1", 1).await;
        assert_eq!(events.next().await.unwrap().name, "tool.called", "{path}");
        completed(&mut events, 1).await;
        assert!(events.last.is_some());
    }
}

#[tokio::test]
async fn place_outside_of_the_journal_is_a_gap() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let mut events = world.events_after(&OPERATOR, "/events", Some("999999")).await;
    let gap = events.next().await.unwrap();
    assert_eq!((gap.name.as_str(), gap.id), ("journal.gap", None));
    assert!(gap.data["oldest"].is_string());
    for bad in ["x", "-1", "99999999999999999999"] {
        let headers = [("last-event-id", bad)];
        let answer = world.send(&OPERATOR, "GET", "/events", &headers, "").await;
        assert_eq!(answer.problem(), (400, "query_invalid".to_owned()), "{bad}");
    }
}

#[tokio::test]
async fn quiet_stream_shows_that_it_lives() {
    let often = |settings: palisade_server::Settings| settings.heartbeat(Duration::from_millis(5));
    let world = World::with(Attached::WhileWatched, |host| host, often);
    world.server.journal().flush().await;
    let mut body = world.open(&OPERATOR, "GET", "/events", &[], "").await.into_body();
    for _ in 0..3 {
        let frame = body.frame().await.unwrap().unwrap();
        assert!(frame.data_ref().unwrap().starts_with(b":\nid: "));
    }
}

#[tokio::test]
async fn readers_are_told_once_that_the_server_ends_soon() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let mut early = world.events(&OPERATOR, "/events").await;
    let mut client = world.events(&CLIENT, "/sessions/s1/events").await;
    world.server.drain();
    let mut late = world.events(&OPERATOR, "/events").await;
    for events in [&mut early, &mut client, &mut late] {
        let told = events.next().await.unwrap();
        assert_eq!((told.name.as_str(), &told.id), ("server.draining", &None));
        assert_eq!((&told.data["event"], &told.data["v"]), (&"server.draining".into(), &1.into()));
        assert!(told.data["time"].is_string() && told.data["seq"].is_null());
    }
    world.server.end_streams();
    assert_eq!(early.next().await, None, "once");
}

#[tokio::test]
async fn streams_end_with_the_server() {
    let world = World::new();
    let mut events = world.events(&OPERATOR, "/events").await;
    world.server.end_streams();
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn reader_who_takes_nothing_delays_nobody() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let mut slow = world.events(&OPERATOR, "/events?after=0").await;
    let mut quick = world.events(&OPERATOR, "/events?after=0").await;
    calculate(&world, "s1", 50).await;
    let all = completed(&mut quick, 50).await;
    assert_eq!(completed(&mut slow, 50).await, all, "and it has lost nothing");
}

/// Cookies open no stream for an unknown page, so that a program has to know all of them.
#[tokio::test]
async fn every_described_stream_is_known_as_one() {
    let world = World::new();
    let described = world.get(&OPERATOR, "/openapi.json").await.json();
    let mut streams = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        let answer = &methods["get"]["responses"]["200"]["content"]["text/event-stream"];
        assert_eq!(palisade_server::is_stream(path), answer.is_object(), "{path}");
        streams += usize::from(answer.is_object());
    }
    assert_eq!(streams, 2);
}
