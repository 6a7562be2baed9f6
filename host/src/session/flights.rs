//! The calls of a session that have begun and not ended, so that they can be cancelled: one by one, or all together.

use crate::tool::CallId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    next: u64,
    closed: bool,
    calls: HashMap<u64, (CallId, CancellationToken)>,
}

/// A call that has begun. Dropped when it has ended.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    flights: &'a Flights,
    number: u64,
    cancel: CancellationToken,
}

impl InFlight<'_> {
    /// Cancelled as soon as somebody cancels the call or its session.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.flights.book().calls.remove(&self.number);
    }
}

impl Flights {
    pub(super) fn enter(&self, call: &CallId) -> InFlight<'_> {
        let (mut book, cancel) = (self.book(), CancellationToken::new());
        if book.closed {
            cancel.cancel();
        }
        let number = book.next;
        book.next += 1;
        book.calls.insert(number, (call.clone(), cancel.clone()));
        InFlight { flights: self, number, cancel }
    }

    /// Ids are the caller's: where several calls run under one, all are meant.
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
        self.book().calls.len()
    }

    fn tokens(&self, which: impl Fn(&CallId) -> bool) -> Vec<CancellationToken> {
        self.book().calls.values().filter(|(id, _)| which(id)).map(|(_, token)| token.clone()).collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With the book closed: a waker may run anything, also another look into it.
fn cancel(tokens: Vec<CancellationToken>) -> usize {
    tokens.into_iter().map(|token| token.cancel()).count()
}
