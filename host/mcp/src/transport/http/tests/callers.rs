//! Tests that the sessions of one caller leave some to others.

use super::world::{World, call, initialize};
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn caller_takes_no_sessions_that_another_needs() {
    let world = World::new();
    let far = "192.0.2.7";
    let mine = world.send_from(far, "POST", &[], &initialize()).await;
    let mine = mine.header("mcp-session-id").unwrap().to_owned();
    let call = |id: u32| call(id, "quick").to_string();
    let named = [("mcp-session-id", mine.as_str())];
    assert_eq!(world.send_from(far, "POST", &named, &call(1)).await.event_text().await, "done");
    sleep(Duration::from_secs(20)).await;
    let mut open = Vec::new();
    loop {
        let begun = world.initialize().await;
        let Some(session) = begun.header("mcp-session-id") else { break };
        open.push(world.send("GET", &[("mcp-session-id", session)], "").await);
    }
    assert!((60..=64).contains(&open.len()), "{}", open.len());
    assert_eq!(
        world.send_from(far, "POST", &named, &call(2)).await.status(),
        200,
        "an idle session is evicted by those of its own caller only"
    );
    let more = world.send_from(far, "POST", &[], &initialize()).await;
    assert_eq!(more.status(), 200);
    let more = more.header("mcp-session-id").unwrap().to_owned();
    for _ in 0..300 {
        world.send_from("192.0.2.8", "POST", &[], &initialize()).await;
    }
    let named = [("mcp-session-id", more.as_str())];
    assert_eq!(
        world.send_from(far, "POST", &named, &call(1)).await.status(),
        200,
        "those that have only begun evict each other first"
    );
}
