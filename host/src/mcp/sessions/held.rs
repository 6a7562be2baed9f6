//! One session: what runs in it, who listens to it, and since when nobody has.

use super::Refusal;
use super::stream::Slot;
use crate::execution::account::Account;
use crate::http::Caller;
use crate::mcp::replies::Replies;
use crate::mcp::requests::{Requests, Weight};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionHandle;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Which session a message belongs to. Stands among the extensions of every request and notification.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct Seat {
    /// The session's id.
    pub(in crate::mcp) session: SessionId,
    /// Cancelled when the session ends, however it does.
    pub(in crate::mcp) ended: CancellationToken,
}

/// A session that is kept.
pub(super) struct Held {
    caller: Caller,
    handle: LocalSessionHandle,
    stop: CancellationToken,
    replies: Replies,
    books: Mutex<Books>,
}

struct Books {
    requests: Requests,
    /// The calls by the numbers of their streams.
    calls: HashMap<u64, Weak<Slot>>,
    listeners: usize,
    touched: Instant,
    state: State,
}

/// Whether there was more in a session than its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Begun,
    InUse,
}

impl Held {
    pub(super) fn new(caller: Caller, handle: LocalSessionHandle) -> Arc<Self> {
        let (requests, calls) = (Requests::default(), HashMap::new());
        let books = Mutex::new(Books { requests, calls, listeners: 0, touched: Instant::now(), state: State::Begun });
        Arc::new(Self { caller, handle, stop: CancellationToken::new(), replies: Replies::default(), books })
    }

    pub(super) fn caller(&self) -> Caller {
        self.caller
    }

    pub(super) fn handle(&self) -> &LocalSessionHandle {
        &self.handle
    }

    /// The questions that are put in it.
    pub(super) fn replies(&self) -> &Replies {
        &self.replies
    }

    pub(super) fn seat(&self) -> Seat {
        Seat { session: self.handle.id().clone(), ended: self.stop.clone() }
    }

    /// Ends the session when it is cancelled, and is cancelled when the session ends.
    pub(super) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    pub(super) fn end(&self) {
        self.stop.cancel();
    }

    pub(super) async fn ended(&self) {
        self.stop.cancelled().await;
    }

    pub(super) fn touch(&self) {
        self.books().touched = Instant::now();
    }

    /// When it was last asked for anything.
    pub(super) fn touched(&self) -> Instant {
        self.books().touched
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.books().state == State::InUse
    }

    /// It counts among those in use from now on.
    pub(super) fn put_to_use(&self) {
        self.books().state = State::InUse;
    }

    /// Since when nothing runs in it and nobody listens to it; `None` while something does.
    pub(super) fn left_since(&self) -> Option<Instant> {
        let books = self.books();
        (books.requests.is_empty() && books.listeners == 0).then_some(books.touched)
    }

    /// Takes note of a request that was cancelled.
    pub(super) fn cancel(&self, id: &RequestId) {
        self.books().requests.cancel(id);
    }

    /// Takes note of a request, whose answer counts in this account for as long as it may be sent again.
    pub(super) fn take_off(
        self: &Arc<Self>,
        id: RequestId,
        (weight, account): (Weight, Account),
    ) -> Result<Flight, Refusal> {
        self.books().requests.begin(&id, weight)?;
        Ok(Flight { held: self.clone(), id, number: None, _account: account })
    }

    /// The call of this number, if it is still going on.
    pub(super) fn slot(&self, number: u64) -> Option<Arc<Slot>> {
        self.books().calls.get(&number)?.upgrade()
    }

    /// Puts a call where its client finds it again.
    pub(super) fn put(&self, number: u64, slot: &Arc<Slot>) {
        self.books().calls.insert(number, Arc::downgrade(slot));
    }

    pub(super) fn listen(self: &Arc<Self>) -> Ear {
        self.books().listeners += 1;
        Ear(self.clone())
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered. Dropped when it has been.
pub(super) struct Flight {
    pub(super) held: Arc<Held>,
    pub(super) id: RequestId,
    pub(super) number: Option<u64>,
    _account: Account,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut books = self.held.books();
        books.requests.end(&self.id);
        books.touched = Instant::now();
        if let Some(number) = self.number {
            books.calls.remove(&number);
        }
    }
}

/// Somebody who listens to a session. Dropped when they have gone.
pub(super) struct Ear(Arc<Held>);

impl Drop for Ear {
    fn drop(&mut self) {
        let mut books = self.0.books();
        books.listeners -= 1;
        books.touched = Instant::now();
    }
}
