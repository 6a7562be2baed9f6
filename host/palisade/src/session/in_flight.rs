//! The calls in flight of a session, for cancellation of one or all of them.

use crate::tool::CallId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(super) struct CallsInFlight(Mutex<CallTable>);

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
}

/// A call in flight. Dropping it ends the call.
#[derive(Debug)]
pub(crate) struct CallInFlight<'a> {
    calls: &'a CallsInFlight,
    index: usize,
    cancel: CancellationToken,
}

impl CallInFlight<'_> {
    /// Returns the token that is cancelled with the call or its session.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }
}

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        let mut table = self.calls.table();
        let ended = table.calls.get_mut(self.index).and_then(Option::take);
        table.free.push(self.index);
        drop(table);
        drop(ended);
    }
}

impl CallsInFlight {
    pub(super) fn enter(&self, call: &CallId, turn: Option<&Arc<str>>) -> CallInFlight<'_> {
        let mut table = self.table();
        let cancel = CancellationToken::new();
        if table.closed {
            cancel.cancel();
        }
        let (call, turn) = (call.clone(), turn.cloned());
        let entry = Some(Entry { call, turn, cancel: cancel.clone() });
        let index = table.free.pop().unwrap_or(table.calls.len());
        match table.calls.get_mut(index) {
            Some(free) => *free = entry,
            None => table.calls.push(entry),
        }
        CallInFlight { calls: self, index, cancel }
    }

    /// Cancels all calls of this id. Callers choose the ids, so several calls may share one.
    pub(super) fn cancel(&self, call: &CallId) -> bool {
        cancel(self.tokens(|entry| entry.call == *call)) > 0
    }

    pub(super) fn cancel_turn(&self, turn: &str) -> usize {
        cancel(self.tokens(|entry| entry.turn.as_deref() == Some(turn)))
    }

    pub(super) fn cancel_all(&self) -> usize {
        cancel(self.tokens(|_| true))
    }

    pub(super) fn close(&self) {
        self.table().closed = true;
        self.cancel_all();
    }

    pub(super) fn len(&self) -> usize {
        let table = self.table();
        table.calls.len() - table.free.len()
    }

    fn tokens(&self, which: impl Fn(&Entry) -> bool) -> Vec<CancellationToken> {
        self.table()
            .calls
            .iter()
            .flatten()
            .filter(|entry| which(entry))
            .map(|entry| entry.cancel.clone())
            .collect()
    }

    fn table(&self) -> MutexGuard<'_, CallTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
