//! One session: its in-flight requests, its listeners, and its idle time.

use super::Refusal;
use super::call_stream::Slot;
use crate::http::Caller;
use crate::messages::in_flight::{Requests, Weight};
use crate::messages::reply_accounts::Replies;
use palisade::internal::Account;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionHandle;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The session of a message, found in the extensions of each request and notification.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    /// The session's id.
    pub(crate) session: SessionId,
    /// Cancelled when the session ends, for whatever reason.
    pub(crate) ended: CancellationToken,
}

/// A session in the table.
pub(super) struct Held {
    caller: Caller,
    handle: LocalSessionHandle,
    stop: CancellationToken,
    replies: Replies,
    books: Mutex<Books>,
}

struct Books {
    requests: Requests,
    /// The calls, keyed by the number of their stream.
    calls: HashMap<u64, Weak<Slot>>,
    listeners: usize,
    touched: Instant,
    state: State,
}

/// The state of a session: in use after the first message that follows `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Begun,
    InUse,
}

impl Held {
    pub(super) fn new(caller: Caller, handle: LocalSessionHandle) -> Arc<Self> {
        let requests = Requests::default();
        let calls = HashMap::new();
        let books = Mutex::new(Books {
            requests,
            calls,
            listeners: 0,
            touched: Instant::now(),
            state: State::Begun,
        });
        Arc::new(Self {
            caller,
            handle,
            stop: CancellationToken::new(),
            replies: Replies::default(),
            books,
        })
    }

    pub(super) fn caller(&self) -> Caller {
        self.caller
    }

    pub(super) fn handle(&self) -> &LocalSessionHandle {
        &self.handle
    }

    /// Returns the server's own requests that have no reply yet.
    pub(super) fn replies(&self) -> &Replies {
        &self.replies
    }

    pub(super) fn seat(&self) -> Seat {
        Seat { session: self.handle.id().clone(), ended: self.stop.clone() }
    }

    /// Returns the token that ends the session and is cancelled when it ends.
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

    /// Returns the time of the last activity.
    pub(super) fn touched(&self) -> Instant {
        self.books().touched
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.books().state == State::InUse
    }

    /// Marks the session as in use.
    pub(super) fn put_to_use(&self) {
        self.books().state = State::InUse;
    }

    /// Returns the start of the idle time, or `None` while a request is in flight or a listener is
    /// connected.
    pub(super) fn left_since(&self) -> Option<Instant> {
        let books = self.books();
        (books.requests.is_empty() && books.listeners == 0).then_some(books.touched)
    }

    /// Records that a request was cancelled.
    pub(super) fn cancel(&self, id: &RequestId) {
        self.books().requests.cancel(id, false);
    }

    /// Records an in-flight request. The account holds the memory of its response for as long as
    /// the response may be sent again.
    pub(super) fn take_off(
        self: &Arc<Self>,
        id: RequestId,
        weight: Weight,
        account: Account,
    ) -> Result<Flight, Refusal> {
        self.books().requests.begin(&id, weight)?;
        Ok(Flight { held: self.clone(), id, number: None, _account: account })
    }

    /// Returns the call with this number, if it has not ended.
    pub(super) fn slot(&self, number: u64) -> Option<Arc<Slot>> {
        self.books().calls.get(&number)?.upgrade()
    }

    /// Registers a call, so that its client can resume it.
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

/// An in-flight request. Dropping it records the end.
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

/// A client that listens to a session. Dropping it records the end.
pub(super) struct Ear(Arc<Held>);

impl Drop for Ear {
    fn drop(&mut self) {
        let mut books = self.0.books();
        books.listeners -= 1;
        books.touched = Instant::now();
    }
}
