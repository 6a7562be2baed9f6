//! Cancellation at every stage of a call: one result and one terminal event each time.

use palisade::{Call, CallId, CancellationToken, confirm::Answer, events::Event, json};
use palisade_tests::case::block_on;
use palisade_tests::stage::{Stage, class, reports_start};
use palisade_tests::{Recorder, guest::DISPATCHER_GATE};

use super::{stage, waiting, writing};

fn id(text: &str) -> CallId {
    CallId::new(text)
}

#[test]
fn queued_call_is_cancelled() {
    let stage = stage();
    let session = stage.host.new_session("s").concurrency(1).build();
    block_on(async {
        let _first = stage.begin(&session, waiting("first"));
        stage.started(1).await;
        let second = stage.begin(&session, waiting("second"));
        while session.in_flight() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(session.cancel(&id("second")));
        assert_eq!(class(&second.await.unwrap()), "cancelled");
        session.close();
    });
    assert_eq!(stage.recorder.names_of("second"), ["tool.failed"]);
}

#[test]
fn confirming_call_is_cancelled() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let call = stage.begin(&session, writing("w"));
        let _question = stage.confirmations.next().await;
        assert_eq!(session.cancel_all(), 1);
        assert_eq!(class(&call.await.unwrap()), "cancelled");
    });
    let names = ["tool.confirmation_requested", "tool.confirmation_resolved", "tool.failed"];
    assert_eq!(stage.recorder.names_of("w"), names);
}

#[test]
fn starting_call_is_cancelled() {
    // The event `tool.called` precedes instantiation, so the guest must not run at all.
    let token = CancellationToken::new();
    let trigger = token.clone();
    let recorder = Recorder::reacting(move |event| {
        if event.name() == "tool.called" {
            trigger.cancel();
        }
    });
    let stage = Stage::with_recorder(recorder, &[DISPATCHER_GATE], |builder| builder);
    let result =
        block_on(stage.host.dispatch(&stage.session(), waiting("c").with_cancellation(token)));
    assert_eq!(class(&result), "cancelled");
    stage.ended_once("c");
}

#[test]
fn running_call_is_cancelled_twice() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let call = stage.begin(&session, waiting("c"));
        stage.started(1).await;
        assert!(session.cancel(&id("c")) && session.cancel(&id("c")), "it has not ended yet");
        assert_eq!(class(&call.await.unwrap()), "cancelled");
    });
    stage.ended_once("c");
}

#[test]
fn ended_call_is_not_cancelled() {
    let stage = stage();
    let session = stage.session();
    let result = block_on(
        stage
            .host
            .dispatch(&session, Call::new("calculate", json!({"expression": "1"})).with_id("c")),
    );
    assert!(result.is_success());
    let heard = stage.recorder.events().len();
    assert!(!session.cancel(&id("c")));
    assert_eq!((session.cancel_all(), stage.recorder.events().len()), (0, heard));
}

#[test]
fn partial_output_is_in_result_and_event() {
    let stage = stage();
    let session = stage.session();
    let result = block_on(async {
        let call = stage.begin(&session, waiting("c"));
        stage.started(1).await;
        session.cancel_all();
        call.await.unwrap()
    });
    let said: Vec<_> = result.content().iter().map(|block| block.as_text().into_owned()).collect();
    assert_eq!(said, ["started"]);
    assert_eq!(result.to_block()["content"][1]["text"], "started", "the model reads it, too");
    let last = stage.recorder.events_of("c").pop();
    assert!(
        matches!(last, Some(Event::Failed(_, failure)) if failure.partial_output.as_deref() == Some("started"))
    );
    assert_eq!(
        stage.recorder.events_of("c").iter().filter(|event| reports_start(event)).count(),
        1
    );
}

#[test]
fn subscriber_may_cancel_within_an_event() {
    // Deadlocks if events are emitted under the session's lock, which the wake-up takes as well.
    let cell = std::sync::Arc::new(std::sync::OnceLock::<palisade::Session>::new());
    let inner = cell.clone();
    let recorder = Recorder::reacting(move |event| {
        if let (Event::ConfirmationRequested(..), Some(session)) = (event, inner.get()) {
            session.cancel_all();
        }
    });
    let stage = Stage::with_recorder(recorder, &[], |builder| builder);
    let session = cell.get_or_init(|| stage.session());
    assert_eq!(class(&block_on(stage.host.dispatch(session, writing("w")))), "cancelled");
    assert!(stage.confirmations.pending().is_empty());
    let _ = Answer::Allow;
}
