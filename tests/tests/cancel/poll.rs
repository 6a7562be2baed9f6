//! Guests that poll for cancellation.

use palisade_tests::guest::CANCEL_POLL;

use super::cancelled_when_started;

fn emitted(seen: &palisade_tests::Seen, text: &str) -> bool {
    seen.events
        .iter()
        .any(|event| matches!(event, palisade::Event::OutputDelta(_, chunk) if chunk == text))
}

#[test]
fn a_guest_that_asks_has_time_to_leave_things_in_order() {
    let seen = cancelled_when_started(CANCEL_POLL, "tidy");
    assert!(emitted(&seen, "tidied"));
    seen.left("tidied.txt", Some("yes")).modified(&["tidied.txt"]);
}

#[test]
fn a_guest_that_claims_a_success_was_cancelled_all_the_same() {
    cancelled_when_started(CANCEL_POLL, "pretend");
}

#[test]
fn a_guest_that_asks_and_goes_on_is_stopped_after_its_grace() {
    let seen = cancelled_when_started(CANCEL_POLL, "ignore");
    assert!(emitted(&seen, "ignored"), "it had its grace");
}
