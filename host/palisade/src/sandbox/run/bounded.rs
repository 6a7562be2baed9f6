//! One run of a guest: one deadline over everything, and every way in which the run can end.

use super::exit_reason::{ExitReason, classify};
use super::state::State;
use super::turns::{RunBounds, in_turns};
use crate::execution::share::{Grant, Share};
use crate::sandbox::limits;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wasmtime::Store;

/// Waits for `units` of the process's sandboxes, for at most `patience`. The call's own clock is
/// not running yet.
pub(crate) async fn take_sandbox(
    sandboxes: &Arc<Share>,
    units: u64,
    cancel: &CancellationToken,
    patience: Duration,
) -> Result<Grant, ExitReason> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ExitReason::Cancelled),
        sandbox = tokio::time::timeout(patience, sandboxes.take(units)) => sandbox.map_err(|_| ExitReason::queue_timeout()),
    }
}

/// Runs `work` on the caller's own thread until it ends, its time is up, or the caller cancels the
/// call.
///
/// `work` is polled first, so that a call that never waits arms no timer.
pub(crate) async fn run_bounded<T>(
    work: impl Future<Output = wasmtime::Result<T>>,
    bounds: &RunBounds<'_>,
) -> Result<T, Stop> {
    if bounds.clock.is_late() {
        return Err(Stop::Deadline);
    }
    let mut work = pin!(in_turns(work, bounds));
    let stop = tokio::select! {
        biased;
        done = &mut work => return done.map_err(Stop::Error),
        () = bounds.cancel.cancelled() => Stop::Cancelled,
        () = bounds.clock.run_out() => Stop::Deadline,
    };
    // The result is discarded: the call has been stopped.
    if bounds.signals.makes_calls() {
        let _ = tokio::time::timeout(limits::NESTED_GRACE, work).await;
    } else if matches!(stop, Stop::Cancelled) && bounds.signals.polls_for_cancellation() {
        let _ = tokio::time::timeout(limits::CANCEL_GRACE, work).await;
    }
    Err(stop)
}

/// The reason why a run stopped before its end.
pub(crate) enum Stop {
    /// The guest trapped, or the host interrupted it.
    Error(wasmtime::Error),
    /// The caller cancelled the call.
    Cancelled,
    /// The deadline passed.
    Deadline,
}

impl Stop {
    /// Classifies the stop by what the host observed.
    pub(crate) fn into_exit_reason(self, store: &Store<State>) -> ExitReason {
        match self {
            Self::Cancelled => ExitReason::Cancelled,
            Self::Deadline => ExitReason::Deadline,
            Self::Error(error) => classify(&error, store.data()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use crate::execution::share::Pool;
    use crate::tool::Digest;

    #[tokio::test]
    async fn call_without_queue_time_takes_only_a_free_sandbox() {
        let sandboxes = Pool::new(1).share(Digest::of(b"a plugin"));
        let nobody_cancels = CancellationToken::new();
        let taken = take_sandbox(&sandboxes, 1, &nobody_cancels, Duration::ZERO).await.unwrap();
        let ended = take_sandbox(&sandboxes, 1, &nobody_cancels, Duration::ZERO).await.unwrap_err();
        assert!(
            matches!(ended, ExitReason::Limit(crate::tool::Limit::Queue, limits::QUEUE_MILLIS)),
            "{ended:?}"
        );
        drop(taken);
    }
}
