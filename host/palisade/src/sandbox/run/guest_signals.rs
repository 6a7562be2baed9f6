//! The signals of a running guest for the future around it: its ticks, whether it polls for its
//! cancellation, and the calls that it makes of other tools.

use crate::execution::BoxFuture;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The facts about a running guest that its store records for the future around it.
#[derive(Default)]
pub(crate) struct GuestSignals {
    /// True once the guest has called the host function `cancelled`.
    has_polled_cancel: AtomicBool,
    /// The number of epoch ticks that have interrupted the guest.
    ticks: AtomicU64,
    /// True while the guest waits for calls that it makes of other tools.
    makes_calls: AtomicBool,
    /// Those calls. The future around the guest polls them beside it: the guests of these calls
    /// need turns, and the guest that makes them holds none while it waits.
    calls: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl fmt::Debug for GuestSignals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestSignals").field("ticks", &self.ticks()).finish_non_exhaustive()
    }
}

impl GuestSignals {
    /// Records that the guest has called the host function `cancelled`, by which it polls for its
    /// own cancellation.
    pub(crate) fn note_cancellation_poll(&self) {
        self.has_polled_cancel.store(true, Ordering::Relaxed);
    }

    /// Returns true if the guest has polled for its cancellation at least once. After a
    /// cancellation such a guest goes on, in its turns, for at most `CANCEL_GRACE` (25 ms), so that
    /// it can clean up. Any other guest is ended at once, because it would not notice the
    /// cancellation.
    pub(crate) fn polls_for_cancellation(&self) -> bool {
        self.has_polled_cancel.load(Ordering::Relaxed)
    }

    /// Counts a tick that interrupts the guest. Returns the future that the engine awaits at the
    /// tick: it is pending at its first poll, which returns control to `in_turns`.
    pub(crate) fn note_tick(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        let mut has_yielded = false;
        // It wakes nothing, because `in_turns` polls the guest again as soon as it has a turn.
        Box::pin(poll_fn(move |_| {
            if std::mem::replace(&mut has_yielded, true) { Poll::Ready(()) } else { Poll::Pending }
        }))
    }

    /// Returns the number of ticks that have interrupted the guest.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Runs calls of other tools beside the guest, whose host function awaits their result here.
    /// `None` if the guest has ended.
    pub(super) async fn run_calls<T: Send + 'static>(
        &self,
        calls: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (done, result) = oneshot::channel();
        *self.calls() = Some(Box::pin(async move {
            let _ = done.send(calls.await);
        }));
        self.makes_calls.store(true, Ordering::Relaxed);
        result.await.ok()
    }

    /// Returns true while the guest waits for calls that it makes. They have its deadline and its
    /// cancellation, and end before the guest does.
    pub(crate) fn makes_calls(&self) -> bool {
        self.makes_calls.load(Ordering::Relaxed)
    }

    /// Polls the calls of the guest, if it makes some. Their end wakes the guest.
    pub(super) fn poll_calls(&self, cx: &mut Context<'_>) {
        if !self.makes_calls() {
            return;
        }
        let mut calls = self.calls();
        if calls.as_mut().is_none_or(|calls| calls.as_mut().poll(cx).is_ready()) {
            *calls = None;
            self.makes_calls.store(false, Ordering::Relaxed);
        }
    }

    /// Drops the calls of a guest that has ended.
    pub(super) fn drop_calls(&self) {
        if self.makes_calls() {
            // Outside of the lock, since it may take long.
            let calls = self.calls().take();
            drop(calls);
            self.makes_calls.store(false, Ordering::Relaxed);
        }
    }

    fn calls(&self) -> MutexGuard<'_, Option<BoxFuture<'static, ()>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
