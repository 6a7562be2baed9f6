//! Cancellation before a call starts, after it has ended, while it waits, and of native tools.

use std::sync::Arc;

use palisade::{
    BoxFuture, CancellationToken, Session, ToolOutput,
    confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable},
    events::Event,
    policy::Policy,
};
use palisade_tests::case::block_on;
use palisade_tests::guest::{CANCEL_COMPUTE, CANCEL_POLL, CANCEL_SLEEP};
use palisade_tests::native::{StopSignal, Waiting};
use palisade_tests::{Case, Recorder};
use tokio::sync::Notify;

use super::{is_started, was_cancelled};

#[test]
fn call_cancelled_before_start_never_starts() {
    let token = CancellationToken::new();
    token.cancel();
    let seen =
        Case::new(CANCEL_COMPUTE, "compute").check_library(|call| call.with_cancellation(token));
    was_cancelled(&seen);
    assert_eq!(seen.events.iter().map(Event::name).collect::<Vec<_>>(), ["tool.failed"]);
}

#[test]
fn second_cancellation_has_no_effect() {
    let token = CancellationToken::new();
    let trigger = token.clone();
    let recorder = Recorder::reacting(move |event| {
        if is_started(event) {
            trigger.cancel();
            trigger.cancel();
        }
    });
    let seen = Case::new(CANCEL_SLEEP, "sleep")
        .check_with_recorder(&recorder, |call| call.with_cancellation(token));
    was_cancelled(&seen);
}

#[test]
fn cancellation_after_the_end_has_no_effect() {
    let token = CancellationToken::new();
    let recorder = Recorder::default();
    let case = Case::new(palisade_tests::guest::CONTRACT_END, "end")
        .input(serde_json::json!({"how": "return"}));
    let seen = case.check_with_recorder(&recorder, |call| call.with_cancellation(token.clone()));
    let before = recorder.events().len();
    token.cancel();
    assert_eq!((seen.output(), recorder.events().len()), ("returned", before));
}

#[test]
fn cancelled_session_ends_its_calls_and_takes_no_more() {
    let case = Case::new(CANCEL_SLEEP, "sleep");
    let world = case.world();
    let session = Arc::new(std::sync::OnceLock::<Session>::new());
    let inner = session.clone();
    let recorder = Recorder::reacting(move |event| {
        if let (true, Some(session)) = (is_started(event), inner.get()) {
            session.close();
        }
    });
    let host = case.builder(&world).subscriber(Arc::new(recorder.clone())).build().unwrap();
    let session =
        session.get_or_init(|| Session::new("s", host.workspace().clone(), Policy::default()));
    for _ in 0..2 {
        let result = block_on(host.dispatch(session, case.to_call(&world)));
        assert_eq!(result.error().map(|error| error.class().as_str()), Some("cancelled"));
    }
    assert_eq!(recorder.terminal().len(), 2);
    assert_eq!(
        recorder.names().iter().filter(|name| **name == "tool.called").count(),
        1,
        "the second never started"
    );
}

/// A confirmer that never answers.
struct Silent(Arc<Notify>);

impl Confirmer for Silent {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[test]
fn call_waiting_for_an_answer_can_be_cancelled() {
    let (asked, token, recorder) =
        (Arc::new(Notify::new()), CancellationToken::new(), Recorder::default());
    let case = Case::new(CANCEL_POLL, "tidy");
    let world = case.world();
    let builder = case.builder(&world).confirmer(Arc::new(Silent(asked.clone())));
    let host = builder.subscriber(Arc::new(recorder.clone())).build().unwrap();
    let call = case.to_call(&world).with_cancellation(token.clone());
    let (result, ()) = block_on(async {
        tokio::join!(host.dispatch(host.session(), call), async {
            asked.notified().await;
            token.cancel();
        })
    });
    assert_eq!(result.error().map(|error| error.class().as_str()), Some("cancelled"));
    let asked = ["tool.confirmation_requested", "tool.confirmation_resolved", "tool.failed"];
    assert_eq!(recorder.names(), asked);
    assert_eq!(world.read("tidied.txt"), None);
}

/// The maximum number of sandboxes that one plugin gets.
const SANDBOXES_OF_ONE: usize = 128;

#[test]
fn call_waiting_for_a_sandbox_can_be_cancelled() {
    let case = Case::new(CANCEL_SLEEP, "sleep");
    let world = case.world();
    let (started, all, queued) =
        (std::sync::atomic::AtomicUsize::new(0), Arc::new(Notify::new()), CancellationToken::new());
    let full = all.clone();
    let recorder = Recorder::reacting(move |event| {
        if is_started(event)
            && started.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 == SANDBOXES_OF_ONE
        {
            full.notify_one();
        }
    });
    let host =
        Arc::new(case.builder(&world).subscriber(Arc::new(recorder.clone())).build().unwrap());
    block_on(async {
        let running = CancellationToken::new();
        let call =
            |token: &CancellationToken| case.to_call(&world).with_cancellation(token.clone());
        let tasks: Vec<_> = (0..SANDBOXES_OF_ONE).map(|_| spawn(&host, call(&running))).collect();
        all.notified().await;
        let (result, ()) = tokio::join!(host.dispatch(host.session(), call(&queued)), async {
            // `join!` has polled the call once by now: it is queued, since all sandboxes of its
            // plugin are taken.
            queued.cancel();
        });
        assert_eq!(result.error().map(|error| error.class().as_str()), Some("cancelled"));
        running.cancel();
        for task in tasks {
            assert!(task.await.unwrap().is_failure());
        }
    });
    assert_eq!(recorder.terminal().len(), SANDBOXES_OF_ONE + 1);
}

fn spawn(
    host: &Arc<palisade::Host>,
    call: palisade::Call,
) -> tokio::task::JoinHandle<palisade::ToolResult> {
    let host = host.clone();
    tokio::spawn(async move { host.dispatch(host.session(), call).await })
}

/// Starts a native tool that waits, cancels its call, and returns the result.
fn native_tool_cancelled(told: StopSignal) -> (palisade::ToolResult, Waiting, Recorder) {
    let (token, recorder) = (CancellationToken::new(), Recorder::default());
    let case = Case::new(CANCEL_SLEEP, "sleep");
    let world = case.world();
    let host = case.builder(&world).subscriber(Arc::new(recorder.clone())).build().unwrap();
    let waiting = Waiting::new("waits", told, || Ok(ToolOutput::text("it was told")));
    host.registry().register(waiting.factory()).unwrap();
    let call = palisade::Call::new("waits", "{}").with_cancellation(token.clone());
    let (result, ()) = block_on(async {
        tokio::join!(host.dispatch(host.session(), call), async {
            waiting.started().await;
            token.cancel();
        })
    });
    (result, waiting, recorder)
}

#[test]
fn native_tool_watching_its_context_is_cancelled() {
    let (result, _, recorder) = native_tool_cancelled(StopSignal::ByContext);
    assert_eq!(result.error().map(|error| error.class().as_str()), Some("cancelled"));
    assert_eq!(recorder.names(), ["tool.called", "tool.failed"]);
}

#[test]
fn native_cancel_is_called_once() {
    let (result, waiting, recorder) = native_tool_cancelled(StopSignal::ByCancel);
    assert_eq!(result.error().map(|error| error.class().as_str()), Some("cancelled"));
    assert_eq!(waiting.cancellations(), 1);
    assert_eq!(recorder.names(), ["tool.called", "tool.failed"]);
}
