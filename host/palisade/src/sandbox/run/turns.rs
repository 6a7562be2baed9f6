//! The CPU scheduler of guests. There are as many turns as cores, and a guest computes only while
//! it holds a turn. Up to its first tick of the epoch clock it may compute without a turn, because
//! most calls end before that tick; `RunBounds::free_tick` has the conditions.
//!
//! The host does not poll a guest that waits for a turn. So the queue of the runtime stays short,
//! timers and cancellations are noticed at once, and an overdue or cancelled guest is ended without
//! another turn.

use super::interrupt::Interrupted;
use crate::execution::FirstTick;
use crate::execution::clock::CallClock;
use crate::execution::owner::{note_computing, note_turn};
use crate::execution::share::{Beside, Grant, Share};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

/// The facts about a running guest that its store records for the future around it.
#[derive(Debug, Default)]
pub(crate) struct GuestSignals {
    /// True once the guest has called the host function `cancelled`.
    has_polled_cancel: AtomicBool,
    /// The number of epoch ticks that have interrupted the guest.
    ticks: AtomicU64,
    /// True while the guest waits for calls that it makes of other tools.
    makes_calls: AtomicBool,
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

    /// Records that the guest makes calls, until the guard is dropped.
    pub(super) fn begin_calls(self: &Arc<Self>) -> RunningCalls {
        self.makes_calls.store(true, Ordering::Relaxed);
        RunningCalls(self.clone())
    }

    /// Returns true while the guest waits for calls that it makes. They have its deadline and its
    /// cancellation, and end before the guest does.
    pub(crate) fn makes_calls(&self) -> bool {
        self.makes_calls.load(Ordering::Relaxed)
    }

    /// Returns the number of ticks that have interrupted the guest.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }
}

/// A guard while a guest makes calls of other tools.
pub(super) struct RunningCalls(Arc<GuestSignals>);

impl Drop for RunningCalls {
    fn drop(&mut self) {
        self.0.makes_calls.store(false, Ordering::Relaxed);
    }
}

/// The bounds of a guest's run: its deadline, its cancellation and its turns.
pub(crate) struct RunBounds<'a> {
    /// The clock of the call.
    pub(crate) clock: &'a CallClock,
    /// Cancelled with the call.
    pub(crate) cancel: &'a CancellationToken,
    /// The signals from the guest's store.
    pub(crate) signals: Arc<GuestSignals>,
    /// The plugin's share of the turns.
    pub(crate) turns: &'a Arc<Share>,
    /// Whether the guest may compute without a turn up to its first tick.
    pub(crate) first_tick: FirstTick,
}

impl RunBounds<'_> {
    /// Returns an error if the guest must not be polled again: at its deadline, and after a
    /// cancellation for which it has never polled. A cancelled guest that has polled is ended by
    /// `run_bounded`, after `CANCEL_GRACE`. While the guest makes calls, they end first.
    fn check(&self) -> Result<(), Interrupted> {
        if self.signals.makes_calls() {
            return Ok(());
        }
        if self.cancel.is_cancelled() && !self.signals.polls_for_cancellation() {
            Err(Interrupted::Cancelled)
        } else if self.clock.left().is_zero() {
            Err(Interrupted::Deadline)
        } else {
            Ok(())
        }
    }

    /// Waits for a turn. `None` if the guest waits for calls that it makes, and is overdue or
    /// cancelled: then it is polled without a turn, so that its calls can end. It does not compute,
    /// because they end with its interruption.
    async fn turn(&self) -> Option<Grant> {
        if !self.signals.makes_calls() {
            return Some(self.turns.take(1).await);
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            () = self.clock.run_out() => None,
            turn = self.turns.take(1) => Some(turn),
        }
    }

    /// Takes the right to compute without a turn now. The guest gets it under three conditions: no
    /// tick has interrupted it yet; `OwnerShares::first_tick` allows it, since no other owner is
    /// active and few guests of this owner wait for a turn; and fewer guests than there are turns
    /// compute in this way now. The last condition is needed because a guest can compute for tens
    /// of milliseconds before its first epoch check, and more guests than cores would delay each
    /// other.
    fn free_tick(&self) -> Option<Beside<'_>> {
        let may_be_free = self.signals.ticks() == 0 && self.first_tick == FirstTick::Free;
        may_be_free.then(|| self.turns.pool().beside()).flatten()
    }
}

/// Polls the future of a guest until it returns or must stop. Each poll needs a turn or a free
/// tick, and lasts until the next tick of the epoch clock or until the guest waits for the host.
/// The turn is released after each poll, so a waiting guest holds none.
pub(crate) async fn in_turns<T>(
    work: impl Future<Output = wasmtime::Result<T>>,
    bounds: &RunBounds<'_>,
) -> wasmtime::Result<T> {
    let mut work = pin!(work);
    let mut waker = None;
    let mut ticks = 0;
    bounds.check()?;
    loop {
        let mut turn = None;
        let free = bounds.free_tick();
        if free.is_none() {
            turn = bounds.turn().await;
            if turn.is_some() {
                note_turn(bounds.turns);
            }
            if bounds.signals.ticks() > ticks {
                // The guest has just used a tick, so timers and overdue guests run first.
                yield_now().await;
            }
            bounds.check()?;
        }
        ticks = bounds.signals.ticks();
        let step =
            poll_fn(|cx| Poll::Ready(step(work.as_mut(), &bounds.signals, &mut waker, cx))).await;
        drop(free);
        match step {
            Step::Done(done) => return done,
            Step::Ticked => drop(turn),
            Step::Waiting(waker) => {
                drop(turn);
                if waker.is_woken() {
                    // A long operation of the host yields, so timers and other calls run first.
                    yield_now().await;
                }
                waker.woken().await;
            }
        }
        bounds.check()?;
    }
}

/// The state of a guest after one poll by the host.
enum Step<T> {
    /// The guest has returned.
    Done(wasmtime::Result<T>),
    /// A tick has interrupted the guest.
    Ticked,
    /// The guest waits for the host.
    Waiting(Arc<GuestWaker>),
}

fn step<T>(
    mut work: Pin<&mut impl Future<Output = wasmtime::Result<T>>>,
    signals: &GuestSignals,
    waker: &mut Option<Arc<GuestWaker>>,
    cx: &mut Context<'_>,
) -> Step<T> {
    note_computing();
    let ticks = signals.ticks();
    // Most guests never wait for the host, so the first poll uses the waker of the whole call. A
    // guest that waits is polled once more at once, with a waker of its own.
    let polled = match &*waker {
        None => work.as_mut().poll(cx),
        Some(waker) => waker.poll(work.as_mut(), cx),
    };
    if polled.is_pending() && signals.ticks() == ticks && waker.is_none() {
        let own = waker.get_or_insert_with(Arc::default).clone();
        return match own.poll(work, cx) {
            Poll::Ready(done) => Step::Done(done),
            Poll::Pending if signals.ticks() > ticks => Step::Ticked,
            Poll::Pending => Step::Waiting(own),
        };
    }
    match (polled, &*waker) {
        (Poll::Ready(done), _) => Step::Done(done),
        (Poll::Pending, Some(waker)) if signals.ticks() == ticks => Step::Waiting(waker.clone()),
        (Poll::Pending, _) => Step::Ticked,
    }
}

/// A waker that records whether the guest itself was woken. Timers and cancellations wake the
/// future around the guest as well; then the guest still waits, and takes no turn.
#[derive(Debug, Default)]
struct GuestWaker {
    is_woken: AtomicBool,
    outer: Mutex<Option<Waker>>,
}

impl GuestWaker {
    fn poll<F: Future>(self: &Arc<Self>, work: Pin<&mut F>, cx: &Context<'_>) -> Poll<F::Output> {
        // Before the poll, so that a wake-up during the poll is not lost.
        self.is_woken.store(false, Ordering::SeqCst);
        self.set_outer(cx.waker());
        work.poll(&mut Context::from_waker(&Waker::from(self.clone())))
    }

    fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::SeqCst)
    }

    async fn woken(&self) {
        poll_fn(|cx| {
            self.set_outer(cx.waker());
            if self.is_woken() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn set_outer(&self, waker: &Waker) {
        let mut outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner);
        if !outer.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *outer = Some(waker.clone());
        }
    }
}

impl Wake for GuestWaker {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        // Cloned, so that the lock is not held during the wake-up.
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}

#[cfg(test)]
mod tests;
