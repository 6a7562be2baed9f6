//! Tests that a call can be cancelled at any moment, ends soon after, and yields one result and one
//! terminal event.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "cancel/poll.rs"]
mod cancel_poll;
#[path = "cancel/dropped.rs"]
mod dropped;
#[path = "cancel/grace.rs"]
mod grace;
#[path = "cancel/interrupted.rs"]
mod interrupted;
#[path = "cancel/states.rs"]
mod states;

use std::time::Duration;

use palisade::{CancellationToken, events::Event};
use palisade_tests::guest::{CANCEL_COMPUTE, CANCEL_SLEEP};
use palisade_tests::{Case, Guest, Observed, Recorder, is_tested};
use serde_json::json;

palisade_tests::foreach_cancel!(is_tested);

/// The upper bound for a cancelled call in real time, also on a busy machine: uncancelled, these
/// guests run forever. `grace.rs` drives the clock and checks the promised time.
const SOON: Duration = Duration::from_secs(20);

/// Returns true if the event is a guest's report that it has started.
fn is_started(event: &Event) -> bool {
    matches!(event, Event::OutputDelta(_, chunk) if chunk == "started")
}

/// Calls a tool and cancels the call as soon as the guest reports that it has started.
#[track_caller]
fn cancelled_when_started(guest: Guest, tool: &str) -> Observed {
    let token = CancellationToken::new();
    let trigger = token.clone();
    let recorder = Recorder::reacting(move |event| {
        if is_started(event) {
            trigger.cancel();
        }
    });
    let case = Case::new(guest, tool).allow(palisade::SideEffects::Write);
    let seen = case.check_with_recorder(&recorder, |call| call.with_cancellation(token));
    was_cancelled(&seen);
    seen
}

#[track_caller]
fn was_cancelled(seen: &Observed) {
    let error = seen.error("cancelled");
    assert_eq!(error["detail"], json!({}));
    assert_eq!(error["is_recoverable"], false);
    let took = seen.result["duration_ms"].as_f64().unwrap();
    assert!(took < SOON.as_secs_f64() * 1e3, "it took {took} ms");
}

#[test]
fn cancel_compute() {
    cancelled_when_started(CANCEL_COMPUTE, "compute");
}

#[test]
fn cancel_sleep() {
    cancelled_when_started(CANCEL_SLEEP, "sleep");
}
