//! The CPU scheduler of guests. A guest computes for longer than a tick, or beside guests of other
//! plugins, only while it holds a turn; there are as many turns as cores.
//!
//! Guests that wait for a turn are parked. So the runtime's queue stays short, timers and
//! cancellations are noticed at once, and an overdue or cancelled guest ends without another turn.

use super::run::Interrupted;
use crate::execution::FirstTick;
use crate::execution::clock::CallClock;
use crate::execution::owner::note_computing;
use crate::execution::share::Share;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

/// The signals from a guest's store to the future that polls the guest.
#[derive(Debug, Default)]
pub(super) struct Signs {
    asked: AtomicBool,
    ticks: AtomicU64,
}

impl Signs {
    /// Records that the guest has polled for cancellation.
    pub(super) fn note_asked(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Returns true if the guest has polled for cancellation.
    pub(super) fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Counts a tick of the guest, and returns the future by which the guest yields.
    pub(super) fn note_tick(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        let mut has_given_way = false;
        // Needs no wake-up: `in_turns` polls the guest again in its next turn.
        Box::pin(poll_fn(move |_| {
            if std::mem::replace(&mut has_given_way, true) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }))
    }

    /// Returns the number of ticks for which the guest has computed.
    pub(super) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }
}

/// The conditions that end the run of a guest, or let it go on.
pub(super) struct Bounds<'a> {
    /// The clock of the call.
    pub(super) clock: &'a CallClock,
    /// Cancelled when the caller gives up.
    pub(super) cancel: &'a CancellationToken,
    /// The signals from the guest's store.
    pub(super) signs: Arc<Signs>,
    /// The plugin's share of the turns.
    pub(super) turns: &'a Arc<Share>,
    /// The rule for the guest's first tick.
    pub(super) first_tick: FirstTick,
}

impl Bounds<'_> {
    /// Fails if the guest must stop. A cancelled guest that polls for cancellation may react.
    fn check(&self) -> Result<(), Interrupted> {
        if self.cancel.is_cancelled() && !self.signs.has_asked() {
            Err(Interrupted::Cancelled)
        } else if self.clock.left().is_zero() {
            Err(Interrupted::Deadline)
        } else {
            Ok(())
        }
    }

    fn needs_turn(&self) -> bool {
        self.signs.ticks() > 0 || self.first_tick == FirstTick::InTurn
    }
}

/// Polls the work of a guest: in turns from its second tick on, or from its first. The turn is
/// released while the guest waits for the host.
pub(super) async fn in_turns<T>(
    work: impl Future<Output = wasmtime::Result<T>>,
    bounds: &Bounds<'_>,
) -> wasmtime::Result<T> {
    let mut work = pin!(work);
    let mut wakeup = None;
    let mut ticks = 0;
    loop {
        let mut turn = None;
        if bounds.needs_turn() {
            turn = Some(bounds.turns.take(1).await);
            if bounds.signs.ticks() > ticks {
                // Lets timers and overdue guests run first.
                yield_now().await;
            }
            bounds.check()?;
        }
        ticks = bounds.signs.ticks();
        match poll_fn(|cx| Poll::Ready(step(work.as_mut(), &bounds.signs, &mut wakeup, cx))).await {
            Step::Done(done) => return done,
            Step::Ticked => drop(turn),
            Step::Waits(wakeup) => {
                drop(turn);
                wakeup.woken().await;
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
    Waits(Arc<Wakeup>),
}

fn step<T>(
    mut work: Pin<&mut impl Future<Output = wasmtime::Result<T>>>,
    signs: &Signs,
    wakeup: &mut Option<Arc<Wakeup>>,
    cx: &mut Context<'_>,
) -> Step<T> {
    note_computing();
    let ticks = signs.ticks();
    // A call that never waits needs no waker of its own. A call that waits is polled once more,
    // with its own waker.
    let polled = match &*wakeup {
        None => work.as_mut().poll(cx),
        Some(wakeup) => wakeup.poll(work.as_mut(), cx),
    };
    if polled.is_pending() && signs.ticks() == ticks && wakeup.is_none() {
        let own = wakeup.get_or_insert_with(Arc::default).clone();
        return match own.poll(work, cx) {
            Poll::Ready(done) => Step::Done(done),
            Poll::Pending if signs.ticks() > ticks => Step::Ticked,
            Poll::Pending => Step::Waits(own),
        };
    }
    match (polled, &*wakeup) {
        (Poll::Ready(done), _) => Step::Done(done),
        (Poll::Pending, Some(wakeup)) if signs.ticks() == ticks => Step::Waits(wakeup.clone()),
        (Poll::Pending, _) => Step::Ticked,
    }
}

/// A waker that tells whether the guest itself was woken, or only the future around it: a guest
/// that waits needs no turn.
#[derive(Debug, Default)]
struct Wakeup {
    is_woken: AtomicBool,
    around: Mutex<Option<Waker>>,
}

impl Wakeup {
    fn poll<F: Future>(self: &Arc<Self>, work: Pin<&mut F>, cx: &Context<'_>) -> Poll<F::Output> {
        // Before the poll, so that a wake-up during the poll is not lost.
        self.is_woken.store(false, Ordering::SeqCst);
        self.wakes(cx.waker());
        work.poll(&mut Context::from_waker(&Waker::from(self.clone())))
    }

    async fn woken(&self) {
        poll_fn(|cx| {
            self.wakes(cx.waker());
            if self.is_woken.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn wakes(&self, waker: &Waker) {
        let mut around = self.around.lock().unwrap_or_else(PoisonError::into_inner);
        if !around.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *around = Some(waker.clone());
        }
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        // Cloned, so that the lock is not held during the wake-up.
        let around = self.around.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(around) = around {
            around.wake();
        }
    }
}

#[cfg(test)]
mod tests;
