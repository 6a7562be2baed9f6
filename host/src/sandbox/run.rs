//! One run of a guest: a fresh store, one deadline over everything, and every way in which it can end.

use super::ended::{Ended, classify};
use super::engine::Runtime;
use super::limits;
use super::state::State;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use wasmtime::{Store, StoreContextMut, UpdateDeadline};

/// Waits for one of the process's sandboxes, for as long as the call has patience left. The call's own clock does not run yet.
pub(super) async fn slot<'a>(
    slots: &'a Semaphore,
    cancel: &CancellationToken,
    patience: Duration,
) -> Result<SemaphorePermit<'a>, Ended> {
    if let Ok(permit) = slots.try_acquire() {
        return Ok(permit);
    }
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Ended::Cancelled),
        permit = tokio::time::timeout(patience, slots.acquire()) => match permit {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Ended::queue()),
        },
    }
}

/// The store of one call. It has a deadline, a limiter and a bound on handles from its first instant.
pub(super) fn store(runtime: &Runtime, state: State) -> Store<State> {
    let mut store = Store::new(&runtime.engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_hostcall_fuel(limits::HOSTCALL_DATA as usize);
    store.set_max_component_handles(limits::COMPONENT_HANDLES);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(at_tick);
    store
}

/// Runs `work` on the caller's own thread until it ends, `time_is_up` completes, or the caller gives up on it.
///
/// `work` is polled first: a call that never waits arms no timer at all.
pub(super) async fn bounded<T>(
    work: impl Future<Output = wasmtime::Result<T>>,
    time_is_up: impl Future<Output = ()>,
    cancel: &CancellationToken,
    polled: &AtomicBool,
) -> Result<T, Stop> {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => done.map_err(Stop::Error),
        () = cancel.cancelled() => {
            let grace = if polled.load(Ordering::Relaxed) { limits::CANCEL_GRACE } else { Duration::ZERO };
            // The outcome no longer matters: whatever the guest still returns, the caller has cancelled the call.
            let _ = tokio::time::timeout(grace, work).await;
            Err(Stop::Cancelled)
        }
        () = time_is_up => Err(Stop::Deadline),
    }
}

/// Why a run stopped before its end.
pub(super) enum Stop {
    /// The guest trapped, or the host stopped it from inside.
    Error(wasmtime::Error),
    /// The caller gave up.
    Cancelled,
    /// The time is up.
    Deadline,
}

impl Stop {
    /// What the stop means, judged by what the host itself knows.
    pub(super) fn into_ended(self, store: &Store<State>) -> Ended {
        match self {
            Self::Cancelled => Ended::Cancelled,
            Self::Deadline => Ended::Deadline,
            Self::Error(error) => classify(&error, store.data()),
        }
    }
}

/// Ends a guest that computes: called at every tick of the clock inside the guest's own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Interrupted {
    #[error("the deadline has passed")]
    Deadline,
    #[error("the call was cancelled")]
    Cancelled,
}

#[allow(clippy::needless_pass_by_value, reason = "wasmtime calls it with the context by value")]
fn at_tick(store: StoreContextMut<'_, State>) -> wasmtime::Result<UpdateDeadline> {
    let state = store.data();
    let now = Instant::now();
    if now >= state.deadline {
        return Err(Interrupted::Deadline.into());
    }
    if state.talk.cancel().is_cancelled() && !state.talk.polled().load(Ordering::Relaxed) {
        return Err(Interrupted::Cancelled.into());
    }
    // A plain yield would be polled again at once; this one lets the runtime see to its timers first.
    Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[tokio::test]
    async fn a_call_that_has_used_up_its_patience_elsewhere_takes_a_free_sandbox_and_waits_for_none() {
        let (slots, nobody_cancels) = (Semaphore::new(1), CancellationToken::new());
        let taken = slot(&slots, &nobody_cancels, Duration::ZERO).await.unwrap();
        let ended = slot(&slots, &nobody_cancels, Duration::ZERO).await.unwrap_err();
        assert!(matches!(ended, Ended::Limit(crate::tool::Limit::Queue, limits::QUEUE_MILLIS)), "{ended:?}");
        drop(taken);
    }
}
