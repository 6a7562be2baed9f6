//! The CPU scheduler of guests. There are as many turns as cores, and a guest computes only while
//! it holds a turn. Up to its first tick of the epoch clock it may compute without a turn, because
//! most calls end before that tick; `RunBounds::free_tick` has the conditions.
//!
//! The host does not poll a guest that waits for a turn. So the queue of the runtime stays short,
//! timers and cancellations are noticed at once, and an overdue or cancelled guest is ended without
//! another turn.

use super::guest_signals::GuestSignals;
use super::interrupt::Interrupted;
use crate::execution::FirstTick;
use crate::execution::clock::CallClock;
use crate::execution::owner::{note_computing, note_turn};
use crate::execution::share::{Beside, Share};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

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
    let _ends_with_this_future = CallsOfGuest(&bounds.signals);
    bounds.check()?;
    loop {
        let mut turn = None;
        let free = bounds.free_tick();
        if free.is_none() {
            turn = Some(bounds.turns.take(1).await);
            note_turn(bounds.turns);
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
                // The calls of the guest need turns of their own, and it holds none meanwhile.
                poll_fn(|cx| {
                    bounds.signals.poll_calls(cx);
                    waker.poll_woken(cx)
                })
                .await;
            }
        }
        bounds.check()?;
    }
}

/// Drops the calls of a guest that has ended.
struct CallsOfGuest<'a>(&'a GuestSignals);

impl Drop for CallsOfGuest<'_> {
    fn drop(&mut self) {
        self.0.drop_calls();
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

    fn poll_woken(&self, cx: &Context<'_>) -> Poll<()> {
        self.set_outer(cx.waker());
        if self.is_woken() { Poll::Ready(()) } else { Poll::Pending }
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
