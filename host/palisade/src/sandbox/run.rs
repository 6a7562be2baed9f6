//! One run of a guest: a fresh store, one deadline over everything, and every way in which the run
//! can end.

use super::ended::{Ended, classify};
use super::engine::Runtime;
use super::limits;
use super::state::State;
use super::turns::{Bounds, in_turns};
use crate::execution::share::{Grant, Share};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use wasmtime::{Store, StoreContextMut, UpdateDeadline};

/// Waits for `units` of the process's sandboxes, for at most `patience`. The call's own clock is
/// not running yet.
pub(super) async fn slot(
    sandboxes: &Arc<Share>,
    units: u64,
    cancel: &CancellationToken,
    patience: Duration,
) -> Result<Grant, Ended> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Ended::Cancelled),
        slot = tokio::time::timeout(patience, sandboxes.take(units)) => slot.map_err(|_| Ended::queue()),
    }
}

/// Creates the store of one call, with a deadline, a limiter and a bound on handles from the start.
pub(super) fn store(runtime: &Runtime, state: State) -> Store<State> {
    let mut store = Store::new(&runtime.engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_hostcall_fuel(limits::HOSTCALL_DATA as usize);
    store.set_max_component_handles(limits::COMPONENT_HANDLES);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(at_tick);
    store
}

/// Runs `work` on the caller's own thread until it ends, its time is up, or the caller cancels the
/// call.
///
/// `work` is polled first, so that a call that never waits arms no timer.
pub(super) async fn bounded<T>(
    work: impl Future<Output = wasmtime::Result<T>>,
    bounds: &Bounds<'_>,
) -> Result<T, Stop> {
    let mut work = pin!(in_turns(work, bounds));
    tokio::select! {
        biased;
        done = &mut work => done.map_err(Stop::Error),
        () = bounds.cancel.cancelled() => {
            if bounds.signs.has_asked() {
                // The result is discarded: the caller has cancelled the call.
                let _ = tokio::time::timeout(limits::CANCEL_GRACE, work).await;
            }
            Err(Stop::Cancelled)
        }
        () = bounds.clock.run_out() => Err(Stop::Deadline),
    }
}

/// The reason why a run stopped before its end.
pub(super) enum Stop {
    /// The guest trapped, or the host interrupted it.
    Error(wasmtime::Error),
    /// The caller cancelled the call.
    Cancelled,
    /// The deadline passed.
    Deadline,
}

impl Stop {
    /// Classifies the stop by what the host observed.
    pub(super) fn into_ended(self, store: &Store<State>) -> Ended {
        match self {
            Self::Cancelled => Ended::Cancelled,
            Self::Deadline => Ended::Deadline,
            Self::Error(error) => classify(&error, store.data()),
        }
    }
}

/// The interruption of a computing guest, raised at a tick of the epoch clock or between two ticks.
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
    let signs = state.talk.signs();
    // A guest that polls for cancellation gets a grace period, in which it may still compute.
    if state.talk.cancel().is_cancelled() && !signs.has_asked() {
        return Err(Interrupted::Cancelled.into());
    }
    Ok(UpdateDeadline::YieldCustom(1, signs.note_tick()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use crate::execution::share::Pool;
    use crate::tool::Digest;

    #[tokio::test]
    async fn call_without_queue_time_takes_only_a_free_sandbox() {
        let slots = Pool::new(1).share(Digest::of(b"a plugin"));
        let nobody_cancels = CancellationToken::new();
        let taken = slot(&slots, 1, &nobody_cancels, Duration::ZERO).await.unwrap();
        let ended = slot(&slots, 1, &nobody_cancels, Duration::ZERO).await.unwrap_err();
        assert!(
            matches!(ended, Ended::Limit(crate::tool::Limit::Queue, limits::QUEUE_MILLIS)),
            "{ended:?}"
        );
        drop(taken);
    }
}
