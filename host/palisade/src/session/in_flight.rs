//! The calls in flight of a session, for cancellation of one or all of them.

use crate::tool::CallId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(super) struct CallsInFlight {
    table: Mutex<CallTable>,
    /// The number of times that calls were stopped, so that most looks need no lock.
    stops: AtomicU64,
}

#[derive(Debug, Default)]
struct CallTable {
    closed: bool,
    /// One slot per concurrent call, up to the highest number so far.
    calls: Vec<Option<Entry>>,
    /// The indices of the free slots.
    free: Vec<usize>,
}

#[derive(Debug)]
struct Entry {
    call: CallId,
    turn: Option<Arc<str>>,
    cancel: CancellationToken,
    /// True from the moment when the cancellation of this call, and of others with it, begins.
    is_stopped: bool,
}

/// A call in flight. Dropping it ends the call.
#[derive(Debug)]
pub(crate) struct CallInFlight<'a> {
    calls: &'a CallsInFlight,
    slot: CallSlot,
    cancel: CancellationToken,
}

/// The place of a call among those in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallSlot {
    index: usize,
    /// The number of stops that do not concern the call, since it has begun after them.
    stops: u64,
}

impl CallInFlight<'_> {
    /// Returns the token that is cancelled with the call or its session.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the place of the call.
    pub(crate) fn slot(&self) -> CallSlot {
        self.slot
    }
}

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        let mut table = self.calls.table();
        let ended = table.calls.get_mut(self.slot.index).and_then(Option::take);
        table.free.push(self.slot.index);
        drop(table);
        drop(ended);
    }
}

impl CallsInFlight {
    pub(super) fn enter(&self, call: &CallId, turn: Option<&Arc<str>>) -> CallInFlight<'_> {
        let mut table = self.table();
        let cancel = CancellationToken::new();
        let is_stopped = table.closed;
        if is_stopped {
            cancel.cancel();
        }
        let (call, turn) = (call.clone(), turn.cloned());
        let entry = Some(Entry { call, turn, cancel: cancel.clone(), is_stopped });
        let index = table.free.pop().unwrap_or(table.calls.len());
        match table.calls.get_mut(index) {
            Some(free) => *free = entry,
            None => table.calls.push(entry),
        }
        // A call of a closed session is stopped from the start.
        let stops = self.stops.load(Ordering::SeqCst) - u64::from(is_stopped);
        CallInFlight { calls: self, slot: CallSlot { index, stops }, cancel }
    }

    /// Returns true if a call is cancelled, or about to be: calls that are cancelled with it may
    /// end first, and free a slot that this one waits for.
    pub(super) fn is_stopped(&self, slot: CallSlot) -> bool {
        if self.stops.load(Ordering::SeqCst) == slot.stops {
            return false;
        }
        let table = self.table();
        let entry = table.calls.get(slot.index).and_then(Option::as_ref);
        entry.is_none_or(|entry| entry.is_stopped)
    }

    /// Cancels all calls of this id. Callers choose the ids, so several calls may share one.
    pub(super) fn cancel(&self, call: &CallId) -> bool {
        cancel(self.stop(|entry| entry.call == *call)) > 0
    }

    pub(super) fn cancel_turn(&self, turn: &str) -> usize {
        cancel(self.stop(|entry| entry.turn.as_deref() == Some(turn)))
    }

    pub(super) fn cancel_all(&self) -> usize {
        cancel(self.stop(|_| true))
    }

    pub(super) fn close(&self) {
        let mut table = self.table();
        table.closed = true;
        let stopped = self.stop_in(&mut table, |_| true);
        // Also without calls: one that begins now is stopped from the start.
        if stopped.is_empty() {
            self.stops.fetch_add(1, Ordering::SeqCst);
        }
        drop(table);
        let _ = cancel(stopped);
    }

    pub(super) fn len(&self) -> usize {
        let table = self.table();
        table.calls.len() - table.free.len()
    }

    /// Stops calls, all of them before the first one is cancelled, and returns their tokens.
    fn stop(&self, which: impl Fn(&Entry) -> bool) -> Vec<CancellationToken> {
        self.stop_in(&mut self.table(), which)
    }

    fn stop_in(
        &self,
        table: &mut CallTable,
        which: impl Fn(&Entry) -> bool,
    ) -> Vec<CancellationToken> {
        let entries = table.calls.iter_mut().flatten().filter(|entry| which(entry));
        let stopped = entries.map(|entry| {
            entry.is_stopped = true;
            entry.cancel.clone()
        });
        let stopped: Vec<CancellationToken> = stopped.collect();
        if !stopped.is_empty() {
            self.stops.fetch_add(1, Ordering::SeqCst);
        }
        stopped
    }

    fn table(&self) -> MutexGuard<'_, CallTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels tokens. The table must be unlocked, because a waker may run code that locks it again.
fn cancel(tokens: Vec<CancellationToken>) -> usize {
    tokens.into_iter().map(|token| token.cancel()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_reused_and_cancel_only_active_calls() {
        let calls = CallsInFlight::default();
        let enter = |id| calls.enter(&CallId::new(id), None);
        let first = enter("first");
        for _ in 0..100 {
            drop(enter("passing"));
        }
        let second = enter("second");
        assert_eq!((calls.len(), calls.table().calls.len()), (2, 2));
        assert!(!calls.cancel(&CallId::new("passing")) && calls.cancel(&CallId::new("second")));
        assert!(second.cancellation().is_cancelled() && !first.cancellation().is_cancelled());
        drop(first);
        assert_eq!((calls.len(), calls.cancel_all()), (1, 1));
        drop(second);
        assert_eq!((calls.len(), calls.cancel_all()), (0, 0));
    }

    #[test]
    fn calls_are_stopped_before_the_first_one_is_cancelled() {
        let calls = CallsInFlight::default();
        let both = ["a", "b"].map(|id| calls.enter(&CallId::new(id), None));
        let tokens = calls.stop(|_| true);
        assert!(both.iter().all(|call| calls.is_stopped(call.slot())));
        assert!(!tokens.iter().any(CancellationToken::is_cancelled));
        let later = calls.enter(&CallId::new("later"), None);
        assert!(!calls.is_stopped(later.slot()));
        calls.close();
        let empty = CallsInFlight::default();
        empty.close();
        assert!(empty.is_stopped(empty.enter(&CallId::new("late"), None).slot()));
        let last = calls.enter(&CallId::new("last"), None);
        assert!(calls.is_stopped(later.slot()) && calls.is_stopped(last.slot()));
    }

    #[test]
    fn turn_is_cancelled_without_the_calls_of_others() {
        let calls = CallsInFlight::default();
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let of_one = ["a", "b"].map(|id| calls.enter(&CallId::new(id), Some(&one)));
        let rest = [Some(&other), None].map(|turn| calls.enter(&CallId::new("c"), turn));
        assert_eq!((calls.cancel_turn("none"), calls.cancel_turn("one")), (0, 2));
        assert!(of_one.iter().all(|call| call.cancellation().is_cancelled()));
        assert!(!rest.iter().any(|call| call.cancellation().is_cancelled()));
    }
}
