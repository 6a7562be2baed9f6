//! The CPU scheduler of guests. A guest computes for longer than a tick, or beside guests of other
//! plugins, only while it holds a turn; there are as many turns as cores.
//!
//! Guests that wait for a turn are parked. So the runtime's queue stays short, timers and
//! cancellations are noticed at once, and an overdue or cancelled guest ends without another turn.

use super::interrupt::Interrupted;
use crate::execution::FirstTick;
use crate::execution::clock::CallClock;
use crate::execution::owner::note_computing;
use crate::execution::share::{Beside, Share};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

/// The signals from a guest's store to the future that polls the guest.
#[derive(Debug, Default)]
pub(crate) struct GuestSignals {
    polled: AtomicBool,
    ticks: AtomicU64,
}

impl GuestSignals {
    /// Records that the guest has polled for cancellation.
    pub(crate) fn note_cancellation_poll(&self) {
        self.polled.store(true, Ordering::Relaxed);
    }

    /// Returns true if the guest has polled for cancellation.
    pub(crate) fn polls_for_cancellation(&self) -> bool {
        self.polled.load(Ordering::Relaxed)
    }

    /// Counts a tick of the guest, and returns the future by which the guest yields.
    pub(crate) fn note_tick(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        let mut has_yielded = false;
        // Needs no wake-up: `in_turns` polls the guest again in its next turn.
        Box::pin(poll_fn(move |_| {
            if std::mem::replace(&mut has_yielded, true) { Poll::Ready(()) } else { Poll::Pending }
        }))
    }

    /// Returns the number of ticks for which the guest has computed.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }
}

/// The conditions that end the run of a guest, or let it go on.
pub(crate) struct RunBounds<'a> {
    /// The clock of the call.
    pub(crate) clock: &'a CallClock,
    /// Cancelled when the caller gives up.
    pub(crate) cancel: &'a CancellationToken,
    /// The signals from the guest's store.
    pub(crate) signals: Arc<GuestSignals>,
    /// The plugin's share of the turns.
    pub(crate) turns: &'a Arc<Share>,
    /// The rule for the guest's first tick.
    pub(crate) first_tick: FirstTick,
}

impl RunBounds<'_> {
    /// Fails if the guest must stop. A cancelled guest that polls for cancellation may react.
    fn check(&self) -> Result<(), Interrupted> {
        if self.cancel.is_cancelled() && !self.signals.polls_for_cancellation() {
            Err(Interrupted::Cancelled)
        } else if self.clock.left().is_zero() {
            Err(Interrupted::Deadline)
        } else {
            Ok(())
        }
    }

    /// Begins a first tick without a turn, if the guest may have one now. As many guests as there
    /// are turns may: a guest can compute for tens of milliseconds before its first epoch check, and
    /// threads that run more guests than cores would delay each of them.
    fn free_tick(&self) -> Option<Beside<'_>> {
        let may_be_free = self.signals.ticks() == 0 && self.first_tick == FirstTick::Free;
        may_be_free.then(|| self.turns.pool().beside()).flatten()
    }
}

/// Polls the work of a guest: in turns from its second tick on, or from its first. The turn is
/// released while the guest waits for the host.
pub(crate) async fn in_turns<T>(
    work: impl Future<Output = wasmtime::Result<T>>,
    bounds: &RunBounds<'_>,
) -> wasmtime::Result<T> {
    let mut work = pin!(work);
    let mut waker = None;
    let mut ticks = 0;
    loop {
        let mut turn = None;
        let free = bounds.free_tick();
        if free.is_none() {
            turn = Some(bounds.turns.take(1).await);
            if bounds.signals.ticks() > ticks {
                // Lets timers and overdue guests run first.
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
                waker.woken().await;
            }
        }
        bounds.check()?;
    }
}

/// The state of a guest after one poll.
enum Step<T> {
    /// The guest has returned.
    Done(wasmtime::Result<T>),
    /// The guest's tick is over.
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
    // A call that never waits needs no waker of its own. A call that waits is polled once more,
    // with its own waker.
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

/// A waker that tells whether the guest itself was woken, or only the future around it: a guest
/// that waits needs no turn.
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

    async fn woken(&self) {
        poll_fn(|cx| {
            self.set_outer(cx.waker());
            if self.is_woken.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
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
