//! The calls in flight of a session, for cancellation of one or all of them.

use crate::tool::CallId;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    closed: bool,
    /// One slot per concurrent call, up to the highest number so far.
    calls: Vec<Option<(CallId, CancellationToken)>>,
    /// The indices of the free slots.
    free: Vec<usize>,
}

/// A call in flight. Dropping it ends the call.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    flights: &'a Flights,
    place: usize,
    cancel: CancellationToken,
}

impl InFlight<'_> {
    /// Returns the token that is cancelled with the call or its session.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut book = self.flights.book();
        let ended = book.calls.get_mut(self.place).and_then(Option::take);
        book.free.push(self.place);
        drop(book);
        drop(ended);
    }
}

impl Flights {
    pub(super) fn enter(&self, call: &CallId) -> InFlight<'_> {
        let mut book = self.book();
        let cancel = CancellationToken::new();
        if book.closed {
            cancel.cancel();
        }
        let entry = Some((call.clone(), cancel.clone()));
        let place = book.free.pop().unwrap_or(book.calls.len());
        match book.calls.get_mut(place) {
            Some(free) => *free = entry,
            None => book.calls.push(entry),
        }
        InFlight { flights: self, place, cancel }
    }

    /// Cancels all calls of this id. Callers choose the ids, so several calls may share one.
    pub(super) fn cancel(&self, call: &CallId) -> bool {
        cancel(self.tokens(|id| id == call)) > 0
    }

    pub(super) fn cancel_all(&self) -> usize {
        cancel(self.tokens(|_| true))
    }

    pub(super) fn close(&self) {
        self.book().closed = true;
        self.cancel_all();
    }

    pub(super) fn len(&self) -> usize {
        let book = self.book();
        book.calls.len() - book.free.len()
    }

    fn tokens(&self, which: impl Fn(&CallId) -> bool) -> Vec<CancellationToken> {
        self.book()
            .calls
            .iter()
            .flatten()
            .filter(|(id, _)| which(id))
            .map(|(_, token)| token.clone())
            .collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels tokens. The book must be unlocked, because a waker may run code that locks it again.
fn cancel(tokens: Vec<CancellationToken>) -> usize {
    tokens.into_iter().map(|token| token.cancel()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_reused_and_cancel_only_active_calls() {
        let flights = Flights::default();
        let enter = |id| flights.enter(&CallId::new(id));
        let first = enter("first");
        for _ in 0..100 {
            drop(enter("passing"));
        }
        let second = enter("second");
        assert_eq!((flights.len(), flights.book().calls.len()), (2, 2));
        assert!(!flights.cancel(&CallId::new("passing")) && flights.cancel(&CallId::new("second")));
        assert!(second.cancellation().is_cancelled() && !first.cancellation().is_cancelled());
        drop(first);
        assert_eq!((flights.len(), flights.cancel_all()), (1, 1));
        drop(second);
        assert_eq!((flights.len(), flights.cancel_all()), (0, 0));
    }
}
