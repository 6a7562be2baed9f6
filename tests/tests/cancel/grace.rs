//! The time that a guest gets after its cancellation, on a clock that the test drives.

use std::time::Duration;

use palisade::{Call, CallId, SideEffects, policy::Policy};
use palisade_tests::case::advance_until_ended;
use palisade_tests::guest::{CANCEL_COMPUTE, CANCEL_POLL, CANCEL_SLEEP};
use palisade_tests::stage::class;
use palisade_tests::{Guest, Stage};
use tokio::time::Instant;

/// The time of a guest that has polled for its cancellation.
const GRACE: Duration = Duration::from_millis(25);
/// The step of the clock.
const STEP: Duration = Duration::from_millis(1);

/// Returns the time on the driven clock from the cancellation of a started call to its end.
fn time_after_cancellation(guest: Guest, tool: &str) -> Duration {
    let stage =
        Stage::new(&[guest], |host| host.policy(Policy::default().allowing(SideEffects::Write)));
    let session = stage.session();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let took = runtime.block_on(async {
        let call = stage.begin(&session, Call::new(tool, "{}").with_id("c"));
        stage.started(1).await;
        tokio::time::pause();
        let begun = Instant::now();
        assert!(session.cancel(&CallId::new("c")));
        let result = advance_until_ended(call, async || tokio::time::advance(STEP).await).await;
        assert_eq!(class(&result), "cancelled");
        begun.elapsed()
    });
    stage.ended_once("c");
    took
}

#[test]
fn polling_guest_gets_twenty_five_milliseconds() {
    let took = time_after_cancellation(CANCEL_POLL, "ignore");
    // A timer is rounded up to the next millisecond.
    assert!((GRACE..=GRACE + 2 * STEP).contains(&took), "{took:?}");
}

#[test]
fn polling_guest_that_ends_by_itself_is_not_waited_for() {
    for tool in ["pretend", "tidy"] {
        let took = time_after_cancellation(CANCEL_POLL, tool);
        assert!(took <= GRACE, "{tool}: {took:?}");
    }
}

#[test]
fn guest_that_never_polls_gets_no_time() {
    for (guest, tool) in [(CANCEL_COMPUTE, "compute"), (CANCEL_SLEEP, "sleep")] {
        let took = time_after_cancellation(guest, tool);
        assert_eq!(took, Duration::ZERO, "{tool}");
    }
}
