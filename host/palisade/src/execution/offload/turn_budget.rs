//! A budget whose work takes turns of its owner, as guests do.

use crate::execution::account::CallBudget;
use crate::execution::owner::{TICK, TURN};
use crate::execution::share::{Grant, Share};
use crate::tool::budget::{Budget, Exhausted};
use std::future::Future as _;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The budget of the host's work for a call, with its current turn. The work yields the turn at the
/// first check after a tick and waits for the next one.
pub(crate) struct TurnBudget {
    budget: CallBudget,
    turns: Arc<Share>,
    tick: Duration,
    turn: Mutex<CurrentTurn>,
}

struct CurrentTurn {
    grant: Option<Grant>,
    since: Instant,
}

impl TurnBudget {
    /// Begins work in this turn, or without one, because most work ends within the first tick.
    pub(crate) fn new(budget: CallBudget, turns: &Arc<Share>, turn: Option<Grant>) -> Self {
        let turn = Mutex::new(CurrentTurn { grant: turn, since: Instant::now() });
        Self { budget, turns: turns.clone(), tick: TICK, turn }
    }

    /// Sets another tick length.
    #[cfg(test)]
    pub(super) fn with_tick(self, tick: Duration) -> Self {
        Self { tick, ..self }
    }

    /// Releases the turn at the end of the work.
    pub(super) fn end(&self) {
        self.turn().grant = None;
    }

    fn turn(&self) -> MutexGuard<'_, CurrentTurn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks this thread until the next turn.
    fn next(&self) -> Result<Grant, Exhausted> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        let mut turn = pin!(self.turns.take(1));
        let mut cancelled = pin!(self.budget.cancel().cancelled());
        loop {
            if let Poll::Ready(turn) = turn.as_mut().poll(&mut cx) {
                return Ok(turn);
            }
            // Polled for its waker: a cancellation must wake this thread.
            let _ = cancelled.as_mut().poll(&mut cx);
            self.budget.check()?;
            thread::park_timeout(
                self.budget.deadline().saturating_duration_since(Instant::now()).min(TURN),
            );
            // The engine's clock, which otherwise abandons expired turns, stops while no guest
            // runs.
            self.turns.pool().abandon_older_than(TURN);
        }
    }
}

impl Budget for TurnBudget {
    fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        self.budget.reserve(bytes)
    }

    fn release(&self, bytes: u64) {
        self.budget.release(bytes);
    }

    fn check(&self) -> Result<(), Exhausted> {
        #[cfg(test)]
        self.budget.note_check();
        self.budget.check()?;
        let mut turn = self.turn();
        if turn.since.elapsed() < self.tick {
            return Ok(());
        }
        turn.grant = None;
        turn.grant = Some(self.next()?);
        turn.since = Instant::now();
        self.budget.check()
    }
}

/// A waker that unparks a thread waiting for a turn.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
