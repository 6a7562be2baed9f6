//! Calls that are stopped together: none of them goes on because another one ends first and frees a
//! slot, or whatever else it waits for.

use super::{stage, waiting};
use palisade::{
    BoxFuture, Call, CallMode, CancellationToken, Definition, ErrorKind, Session, SideEffects,
    Tool, ToolContext, ToolOutput, ValidInput, json,
};
use palisade_tests::Stage;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// The calls that hold all slots of the session, and those that wait for one.
const RUNNING: usize = 4;
const QUEUED: usize = 24;
/// Attempts for each way to stop.
const ROUNDS: usize = 15;

/// Begins a message, waits until its first calls run and the others are queued, and stops it.
async fn round(stage: &Stage, round: usize, stop: impl AsyncFnOnce(&Session, Message<'_>)) {
    let session = stage.host.new_session(&format!("s{round}")).concurrency(RUNNING as u32);
    let session = session.build();
    let token = CancellationToken::new();
    let running = (0..RUNNING).map(|number| waiting(&format!("running {round} {number}")));
    let queued = (0..QUEUED).map(|number| {
        Call::new("calculate", json!({"expression": "1"}))
            .with_id(&format!("queued {round} {number}"))
    });
    let calls = running.chain(queued);
    let calls = calls.map(|call| call.with_cancellation(token.clone()).with_turn("turn"));
    let results = Box::pin(stage.host.dispatch_all(&session, calls.collect()));
    let mut message = Message { results, token: &token };
    let waits = async || {
        stage.started((round + 1) * RUNNING).await;
        while session.in_flight() + begun(stage, round).len() < RUNNING + QUEUED {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    message.begin(waits).await;
    let before = begun(stage, round);
    stop(&session, message).await;
    while session.in_flight() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // A quick call may have had a slot before the first calls took them all.
    assert_eq!(begun(stage, round), before, "round {round}");
}

/// Returns the numbers of the quick calls that have begun.
fn begun(stage: &Stage, round: usize) -> Vec<usize> {
    let names = |number| stage.recorder.names_of(&format!("queued {round} {number}"));
    (0..QUEUED).filter(|number| names(*number).contains(&"tool.called")).collect()
}

/// A message whose calls are in flight.
struct Message<'a> {
    results: BoxFuture<'a, Vec<palisade::ToolResult>>,
    token: &'a CancellationToken,
}

impl Message<'_> {
    /// Polls the message until its first calls hold all slots, and the others wait.
    async fn begin(&mut self, waits: impl AsyncFnOnce()) {
        tokio::select! {
            _ = &mut self.results => unreachable!("its first calls wait"),
            () = waits() => {}
        }
    }
}

fn on_two_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn stopped(stop: &impl AsyncFn(&Session, Message<'_>)) {
    let stage = stage();
    on_two_threads().block_on(async {
        for number in 0..ROUNDS {
            round(&stage, number, stop).await;
        }
    });
}

#[test]
fn dropped_message_begins_no_queued_call() {
    stopped(&async |_, message| {
        drop(message.results);
    });
}

#[test]
fn cancelled_session_begins_no_queued_call() {
    stopped(&async |session, message| {
        session.cancel_all();
        let _ = message.results.await;
    });
}

#[test]
fn closed_session_begins_no_queued_call() {
    stopped(&async |session, message| {
        session.close();
        let _ = message.results.await;
    });
}

#[test]
fn shared_token_begins_no_queued_call() {
    stopped(&async |_, message| {
        message.token.cancel();
        let _ = message.results.await;
    });
}

#[test]
fn cancelled_turn_begins_no_queued_call() {
    stopped(&async |session, message| {
        session.cancel_turn("turn");
        let _ = message.results.await;
    });
}

/// A tool that waits for one of a few places, as a server with bounded calls lets it.
struct Guest(Definition, Arc<Places>);

struct Places {
    free: Semaphore,
    taken: AtomicUsize,
    waiting: AtomicUsize,
}

impl Tool for Guest {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        let places = &self.1;
        Box::pin(async move {
            places.waiting.fetch_add(1, Ordering::SeqCst);
            let place = tokio::select! {
                biased;
                () = context.cancelled() => return Err(ErrorKind::Cancelled),
                place = places.free.acquire() => place,
            };
            places.taken.fetch_add(1, Ordering::SeqCst);
            context.cancelled().await;
            drop(place);
            Err(ErrorKind::Cancelled)
        })
    }
}

/// Stops a message whose calls wait for the places of their tool, and returns the number of calls
/// that have had one.
async fn places_taken(stage: &Stage, places: &Places) -> usize {
    let calls = (0..RUNNING + QUEUED).map(|_| Call::new("guest", "{}")).collect();
    let session = stage.host.new_session("places").concurrency((RUNNING + QUEUED) as u32).build();
    let message = stage.host.dispatch_all(&session, calls);
    tokio::select! {
        _ = message => unreachable!("no call ends by itself"),
        () = async {
            let all = RUNNING + QUEUED;
            while places.waiting.load(Ordering::SeqCst) < all
                || places.taken.load(Ordering::SeqCst) < RUNNING
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        } => {}
    }
    while session.in_flight() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    places.taken.load(Ordering::SeqCst)
}

#[test]
fn dropped_native_calls_take_no_place_that_another_one_frees() {
    for mode in [CallMode::InPlace, CallMode::OWN_THREADS] {
        let stage = Stage::new(&[], |builder| builder.call_mode(mode));
        for round in 0..ROUNDS {
            let (free, taken, waiting) = (Semaphore::new(RUNNING), 0.into(), 0.into());
            let places = Arc::new(Places { free, taken, waiting });
            let schema = json!({"type": "object"});
            let definition =
                Definition::new("guest", "Waits for a place.", SideEffects::None, schema).unwrap();
            let own = places.clone();
            let factory =
                Arc::new(move || Box::new(Guest(definition.clone(), own.clone())) as Box<dyn Tool>);
            stage.host.registry().register(factory).unwrap();
            let taken = on_two_threads().block_on(places_taken(&stage, &places));
            assert_eq!(taken, RUNNING, "round {round}, {mode:?}");
            stage.host.registry().unregister("guest").unwrap();
        }
    }
}
