//! Calls that are cancelled at every stage and more than once, and panics in the embedder's
//! callbacks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use palisade::{
    BoxFuture, Call, CallId, ToolResult,
    confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable},
};
use palisade_tests::guest::{CANCEL_COMPUTE, CANCEL_POLL, CANCEL_SLEEP, DISPATCHER_GATE};
use palisade_tests::oracle::Oracle;
use palisade_tests::stage::class;
use palisade_tests::{Guest, Stage};
use serde_json::json;

use super::{ENOUGH, SHORT, raw};

fn oracle(guests: &[Guest]) -> Oracle {
    Oracle::new(|_, builder| {
        guests.iter().fold(builder, |builder, guest| builder.plugins(guest.directory()))
    })
}

/// Starts these calls in a session that runs one at a time, waits until the first has started, and
/// cancels all of them with `way`.
async fn given_up(stage: Stage, calls: Vec<Call>, way: fn(&palisade::Session)) -> Vec<ToolResult> {
    let session = stage.host.new_session("s").concurrency(1).build();
    let tasks: Vec<_> = calls.iter().map(|call| begin(&stage, &session, call.clone())).collect();
    let local = async {
        stage.started(1).await;
        while session.in_flight() < calls.len() {
            tokio::task::yield_now().await;
        }
        way(&session);
    };
    local.await;
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

fn begin(
    stage: &Stage,
    session: &palisade::Session,
    call: Call,
) -> tokio::task::JoinHandle<ToolResult> {
    stage.begin(session, call)
}

#[track_caller]
fn all_cancelled(results: &[ToolResult]) {
    for result in results {
        assert_eq!(class(result), "cancelled", "{result}");
    }
}

#[test]
fn running_calls_and_queued_ones_are_cancelled_in_time() {
    for (guest, tool) in [
        (CANCEL_COMPUTE, "compute"),
        (CANCEL_SLEEP, "sleep"),
        (CANCEL_POLL, "ignore"),
        (CANCEL_POLL, "pretend"),
    ] {
        let results = oracle(&[guest]).watch(SHORT, |stage| {
            let calls =
                ["first", "second", "third"].map(|id| Call::new(tool, json!({})).with_id(id));
            given_up(stage.clone(), calls.into(), |session| assert_eq!(session.cancel_all(), 3))
        });
        all_cancelled(&results);
    }
}

#[test]
fn queued_call_is_cancelled_before_instantiation() {
    let oracle = oracle(&[CANCEL_SLEEP]);
    let results = oracle.watch(SHORT, |stage| {
        let calls =
            ["first", "second", "third"].map(|id| Call::new("sleep", json!({})).with_id(id));
        given_up(stage.clone(), calls.into(), |session| assert_eq!(session.cancel_all(), 3))
    });
    all_cancelled(&results);
    let called = oracle.events().iter().filter(|event| event.name() == "tool.called").count();
    assert_eq!(called, 1, "the calls behind it never started");
}

/// Returns the time from the cancellation to the end of such a call: the fastest of five, since
/// other processes may take the CPU.
fn ends_within(guest: Guest, tool: &str) -> Duration {
    let quickest = std::sync::Mutex::new(Duration::MAX);
    let oracle = oracle(&[guest]);
    for _ in 0..5 {
        let results = oracle.watch(SHORT, |stage| {
            let (stage, quickest) = (stage.clone(), &quickest);
            async move {
                let session = stage.session();
                let call = stage.begin(&session, Call::new(tool, json!({})).with_id("c"));
                stage.started(1).await;
                let start = Instant::now();
                session.cancel_all();
                let result = call.await.unwrap();
                let mut quickest = quickest.lock().unwrap();
                *quickest = quickest.min(start.elapsed());
                vec![result]
            }
        });
        all_cancelled(&results);
    }
    quickest.into_inner().unwrap()
}

#[test]
fn computing_call_ends_in_50_ms_and_sleeping_in_20_ms() {
    for (guest, tool, most) in [(CANCEL_COMPUTE, "compute", 50), (CANCEL_SLEEP, "sleep", 20)] {
        let took = ends_within(guest, tool);
        assert!(took <= Duration::from_millis(most), "{tool}: {took:?}");
    }
}

#[test]
fn repeated_or_unknown_cancellation_has_no_effect() {
    let results = oracle(&[CANCEL_COMPUTE]).watch(SHORT, |stage| {
        let calls = vec![Call::new("compute", json!({})).with_id("first")];
        given_up(stage.clone(), calls, |session| {
            assert!(!session.cancel(&CallId::new("nobody")));
            assert!(session.cancel(&CallId::new("first")) && session.cancel(&CallId::new("first")));
            session.close();
            session.close();
        })
    });
    all_cancelled(&results);
}

#[test]
fn call_is_cancelled_during_its_question() {
    let results = oracle(&[DISPATCHER_GATE]).watch(SHORT, |stage| {
        let stage = stage.clone();
        async move {
            let session = stage.session();
            let call =
                stage.begin(&session, Call::new("of_write", json!({"number": 1})).with_id("w"));
            let question = stage.confirmations.next().await;
            assert_eq!(session.cancel_all(), 1);
            let result = call.await.unwrap();
            assert!(stage.confirmations.answer(&question.id, Answer::Allow).is_err());
            assert!(!stage.world.root().join("written.txt").exists());
            vec![result]
        }
    });
    all_cancelled(&results);
}

#[test]
fn dropped_call_ends_once_in_any_state() {
    for (guest, tool) in
        [(CANCEL_COMPUTE, "compute"), (CANCEL_SLEEP, "sleep"), (CANCEL_POLL, "ignore")]
    {
        oracle(&[guest]).watch(SHORT, |stage| {
            let stage = stage.clone();
            async move {
                let session = stage.session();
                let call = stage.begin(&session, Call::new(tool, json!({})).with_id("c"));
                stage.started(1).await;
                call.abort();
                let _ = call.await;
            }
        });
    }
}

fn panics() -> Result<Answer, Unavailable> {
    panic!("this panic is part of a test")
}

/// A confirmer that panics.
struct Panicking;

impl Confirmer for Panicking {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async { panics() })
    }
}

#[test]
fn confirmer_panic_is_no_yes_and_affects_no_other_call() {
    let oracle = Oracle::new(|_, builder| {
        builder.plugins(DISPATCHER_GATE.directory()).confirmer(Arc::new(Panicking))
    })
    .panicking(1);
    let result = oracle.call(&Call::new("of_write", json!({"number": 1})), ENOUGH);
    assert!(
        ["execution_error", "user_denied", "permission_denied"].contains(&class(&result)),
        "{result}"
    );
    assert!(!result.to_json().to_string().contains("part of a test"), "{result}");
    assert!(!oracle.stage.world.root().join("written.txt").exists());
}

#[test]
fn native_panic_fails_only_its_call() {
    let native =
        palisade_tests::native::Native::new("bad", |_, _| panic!("this panic is part of a test"));
    let oracle = Oracle::new(|_, builder| builder.tool(native.factory())).panicking(1);
    let result = oracle.call(&Call::new("bad", json!({})), ENOUGH);
    assert_eq!(
        (class(&result), &result.to_json()["error"]["detail"]["kind"]),
        ("execution_error", &json!("internal"))
    );
    assert!(!result.to_json().to_string().contains("part of a test"), "{result}");
}

#[test]
fn call_is_cancelled_in_a_looping_start_function() {
    let bytes = raw().starting("(loop (br 0))").build();
    let oracle = Oracle::new(|world, builder| {
        std::fs::write(world.plugins().join("raw.wasm"), &bytes).unwrap();
        builder.plugins(world.plugins())
    });
    let results = oracle.watch(SHORT, |stage| {
        let stage = stage.clone();
        async move {
            let session = stage.session();
            let call = stage.begin(&session, Call::new("raw", json!({})).with_id("c"));
            stage
                .recorder
                .until(|events| events.iter().any(|event| event.name() == "tool.called"))
                .await;
            assert_eq!(session.cancel_all(), 1);
            vec![call.await.unwrap()]
        }
    });
    all_cancelled(&results);
}
