//! Guests that poll for cancellation.

use palisade_tests::guest::CANCEL_POLL;

use super::cancelled_when_started;

fn emitted(seen: &palisade_tests::Observed, text: &str) -> bool {
    seen.events.iter().any(
        |event| matches!(event, palisade::events::Event::OutputDelta(_, chunk) if chunk == text),
    )
}

#[test]
fn polling_guest_may_clean_up() {
    let seen = cancelled_when_started(CANCEL_POLL, "tidy");
    assert!(emitted(&seen, "tidied"));
    seen.left("tidied.txt", Some("yes")).modified(&["tidied.txt"]);
}

#[test]
fn cancelled_guest_cannot_claim_success() {
    cancelled_when_started(CANCEL_POLL, "pretend");
}

#[test]
fn polling_guest_is_stopped_after_its_grace() {
    let seen = cancelled_when_started(CANCEL_POLL, "ignore");
    assert!(emitted(&seen, "ignored"), "it had its grace period");
}
