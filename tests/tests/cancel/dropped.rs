//! Callers that drop the future of a call, which cancels the call.

use std::sync::Arc;

use palisade::{ErrorClass, events::Event};
use palisade_tests::case::block_on;
use palisade_tests::guest::{CANCEL_COMPUTE, CANCEL_POLL, CANCEL_SLEEP};
use palisade_tests::{Case, Guest, Recorder};
use tokio::sync::Notify;

use super::is_started;

/// Starts a call and drops it as soon as the guest reports that it has started.
fn dropped_when_started(guest: Guest, tool: &str) -> Vec<Event> {
    let started = Arc::new(Notify::new());
    let notify = started.clone();
    let recorder = Recorder::reacting(move |event| {
        if is_started(event) {
            notify.notify_one();
        }
    });
    let case = Case::new(guest, tool);
    let world = case.world();
    let builder = case
        .builder(&world)
        .policy(palisade::policy::Policy::default().allowing(palisade::SideEffects::Write));
    let host = builder.subscriber(Arc::new(recorder.clone())).build().unwrap();
    block_on(async {
        tokio::select! {
            result = host.dispatch(host.session(), case.to_call(&world)) => panic!("it ended by itself: {result}"),
            () = started.notified() => {}
        }
    });
    assert_eq!(
        world.read("tidied.txt"),
        None,
        "a guest with a dropped caller gets no grace period"
    );
    recorder.events()
}

#[track_caller]
fn ends_once(events: &[Event]) {
    let terminal: Vec<&Event> = events.iter().filter(|event| event.is_terminal()).collect();
    assert!(
        matches!(terminal[..], [Event::Failed(_, failure)] if failure.class == ErrorClass::Cancelled),
        "{terminal:?}"
    );
    assert!(events.last().is_some_and(Event::is_terminal), "nothing follows the end");
}

#[test]
fn dropped_computing_call_has_one_terminal_event() {
    ends_once(&dropped_when_started(CANCEL_COMPUTE, "compute"));
}

#[test]
fn dropped_sleeping_call_has_one_terminal_event() {
    ends_once(&dropped_when_started(CANCEL_SLEEP, "sleep"));
}

#[test]
fn dropped_polling_call_has_one_terminal_event() {
    ends_once(&dropped_when_started(CANCEL_POLL, "tidy"));
}

#[test]
fn unpolled_call_has_no_event() {
    let recorder = Recorder::default();
    let case = Case::new(CANCEL_SLEEP, "sleep");
    let world = case.world();
    let host = case.builder(&world).subscriber(Arc::new(recorder.clone())).build().unwrap();
    drop(host.dispatch(host.session(), case.to_call(&world)));
    assert_eq!(recorder.names(), Vec::<&str>::new());
}
