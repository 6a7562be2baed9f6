//! One session: its in-flight requests, its listeners, and its idle time.

use super::call_stream::CallSlot;
use super::error::SessionRejection;
use crate::http::{Caller, ClientAddress};
use crate::messages::in_flight::{InFlightRequests, Weight};
use crate::messages::reply_accounts::ReplyAccounts;
use crate::protocol::lifecycle::Dialect;
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
pub(crate) struct SessionRef {
    /// The session's id.
    pub(crate) id: SessionId,
    /// Cancelled when the session ends, for whatever reason.
    pub(crate) ended: CancellationToken,
}

/// The sender of a session's first message, whose sessions are counted together. A later message
/// may come from another address.
pub(super) type Sender = (Caller, ClientAddress);

/// A session in the table.
pub(super) struct Session {
    sender: Sender,
    handle: LocalSessionHandle,
    stop: CancellationToken,
    replies: ReplyAccounts,
    dialect: Dialect,
    state: Mutex<State>,
}

/// An in-flight request. Dropping it records the end.
pub(super) struct RequestGuard {
    /// The session of the request.
    pub(super) session: Arc<Session>,
    /// The id of the request.
    pub(super) id: RequestId,
    /// The number of its stream, once it has one.
    pub(super) number: Option<u64>,
    /// The memory account of the request.
    pub(super) account: Account,
}

/// A client that listens to a session. Dropping it records the end.
pub(super) struct ListenerGuard(Arc<Session>);

impl Session {
    /// Creates a session of this sender that begins.
    pub(super) fn new(sender: Sender, handle: LocalSessionHandle, dialect: Dialect) -> Arc<Self> {
        let state = State {
            requests: InFlightRequests::default(),
            calls: HashMap::new(),
            listeners: 0,
            last_activity: Instant::now(),
            usage: Usage::Begun,
        };
        Arc::new(Self {
            sender,
            handle,
            stop: CancellationToken::new(),
            replies: ReplyAccounts::default(),
            dialect,
            state: Mutex::new(state),
        })
    }

    /// Returns the owner of the session.
    pub(super) fn caller(&self) -> Caller {
        self.sender.0
    }

    /// Returns the owner of the session, with the address that it began at.
    pub(super) fn sender(&self) -> Sender {
        self.sender
    }

    /// Returns the dialect of the session's client.
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the handle of the session in `rmcp`.
    pub(super) fn handle(&self) -> &LocalSessionHandle {
        &self.handle
    }

    /// Returns the accounts of the replies to the server's own requests.
    pub(super) fn replies(&self) -> &ReplyAccounts {
        &self.replies
    }

    /// Returns the reference that is attached to the messages of the session.
    pub(super) fn session_ref(&self) -> SessionRef {
        SessionRef { id: self.handle.id().clone(), ended: self.stop.clone() }
    }

    /// Returns the token that ends the session and is cancelled when it ends.
    pub(super) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Ends the session, and with it its calls.
    pub(super) fn end(&self) {
        self.stop.cancel();
    }

    /// Completes when the session has ended.
    pub(super) async fn ended(&self) {
        self.stop.cancelled().await;
    }

    /// Records an activity.
    pub(super) fn touch(&self) {
        self.state().last_activity = Instant::now();
    }

    /// Returns the time of the last activity.
    pub(super) fn last_activity(&self) -> Instant {
        self.state().last_activity
    }

    /// Returns true after the first message that follows `initialize`.
    pub(super) fn is_in_use(&self) -> bool {
        self.state().usage == Usage::InUse
    }

    /// Marks the session as in use.
    pub(super) fn mark_in_use(&self) {
        self.state().usage = Usage::InUse;
    }

    /// Returns the start of the idle time, or `None` while a request is in flight or a listener is
    /// connected.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.requests.is_empty() && state.listeners == 0).then_some(state.last_activity)
    }

    /// Records that a request was cancelled.
    pub(super) fn cancel(&self, id: &RequestId) {
        self.state().requests.cancel(id, false);
    }

    /// Records an in-flight request. The account holds the memory of its response for as long as
    /// the response may be sent again.
    pub(super) fn begin_request(
        self: &Arc<Self>,
        id: RequestId,
        weight: Weight,
        account: Account,
    ) -> Result<RequestGuard, SessionRejection> {
        self.state().requests.begin(&id, weight)?;
        Ok(RequestGuard { session: self.clone(), id, number: None, account })
    }

    /// Returns the call with this number, if it has not ended.
    pub(super) fn call(&self, number: u64) -> Option<Arc<CallSlot>> {
        self.state().calls.get(&number)?.upgrade()
    }

    /// Registers a call, so that its client can resume it.
    pub(super) fn register_call(&self, number: u64, call: &Arc<CallSlot>) {
        self.state().calls.insert(number, Arc::downgrade(call));
    }

    /// Counts a listener until the guard is dropped.
    pub(super) fn listen(self: &Arc<Self>) -> ListenerGuard {
        self.state().listeners += 1;
        ListenerGuard(self.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.session.state();
        state.requests.remove(&self.id);
        state.last_activity = Instant::now();
        if let Some(number) = self.number {
            state.calls.remove(&number);
        }
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.listeners -= 1;
        state.last_activity = Instant::now();
    }
}

/// The state that requests and listeners change.
struct State {
    requests: InFlightRequests,
    /// The calls, keyed by the number of their stream.
    calls: HashMap<u64, Weak<CallSlot>>,
    listeners: usize,
    last_activity: Instant,
    usage: Usage,
}

/// Whether a session counts as in use: after the first message that follows `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usage {
    Begun,
    InUse,
}
