//! The state of one client: its session, its subscriptions, and its log level.

#![expect(
    deprecated,
    reason = "messages that the next revision drops; clients of older revisions expect them"
)]

use super::client_session::{ClientSession, Introduction, TransportKind};
use super::known_lists::{KnownLists, ListDigest, ListKind};
use super::session_factory::SessionFactory;
use super::subscriptions::Subscriptions;
use palisade::Session;
use palisade::tool::Digest;
use rmcp::model::LoggingLevel;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The client at the other end of a connection. Dropping it ends its session.
pub(crate) struct Client {
    session: ClientSession,
    /// The caller, a token at an address, over HTTP.
    caller: Option<Digest>,
    /// Numbers the calls, so that their ids are unique. Request ids are not: clients choose them.
    next_call: AtomicU64,
    log_level: Mutex<LoggingLevel>,
    /// The lists that the client was last shown, or could have seen when it connected.
    known_lists: Mutex<KnownLists>,
    /// The resources that a stateful client has subscribed to.
    subscriptions: Subscriptions,
}

impl Client {
    /// Creates a client with a session of its own, which is a caller with shares of its own.
    pub(crate) fn new(sessions: &SessionFactory, transport: TransportKind) -> Self {
        Self::with(sessions.open(transport, None), None)
    }

    /// Creates a client over HTTP with a session of its own, which has shares of its own within
    /// those of this caller.
    pub(crate) fn of_caller(sessions: &SessionFactory, caller: Digest) -> Self {
        Self::with(sessions.open(TransportKind::Http, Some(caller)), Some(caller))
    }

    fn with(session: ClientSession, caller: Option<Digest>) -> Self {
        Self {
            session,
            caller,
            next_call: AtomicU64::new(1),
            log_level: Mutex::new(LoggingLevel::Info),
            known_lists: Mutex::default(),
            subscriptions: Subscriptions::default(),
        }
    }

    /// Returns a name that no client of another run has: the id of the session.
    pub(crate) fn name(&self) -> &str {
        self.session.id()
    }

    /// Returns who the client is, whatever name it claims: its token at its address, or else its
    /// connection.
    pub(crate) fn caller(&self) -> String {
        self.caller.map_or_else(|| self.name().to_owned(), |caller| caller.to_string())
    }

    /// Returns the transport of the client.
    pub(crate) fn transport(&self) -> TransportKind {
        self.session.transport()
    }

    /// Returns the session of the client's calls.
    pub(crate) fn session(&self) -> &Session {
        self.session.session()
    }

    /// Notes who the client is, at its first request.
    pub(crate) fn introduce(&self, introduction: impl FnOnce() -> Introduction) {
        self.session.introduce(introduction);
    }

    /// Returns a call id that no call of another run has.
    pub(crate) fn next_call_id(&self) -> String {
        format!("{}-{}", self.name(), self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the minimum log level of a stateful client; `info` unless the client has set one.
    pub(crate) fn log_level(&self) -> LoggingLevel {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the minimum log level.
    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Returns the lists that the client knows.
    pub(crate) fn known_lists(&self) -> KnownLists {
        *self.known_lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the client is shown a list.
    pub(crate) fn record_list(&self, list: ListKind, digest: ListDigest) {
        self.known_lists.lock().unwrap_or_else(PoisonError::into_inner).set(list, digest);
    }

    /// Records these lists as known, except for the ones the client has been shown.
    pub(crate) fn record_baseline(&self, lists: KnownLists) {
        let mut known = self.known_lists.lock().unwrap_or_else(PoisonError::into_inner);
        *known = known.or(lists);
    }

    /// Returns the resources that a stateful client has subscribed to.
    pub(crate) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Completes when the client has disconnected.
    pub(crate) async fn disconnected(&self) {
        self.session.ended().await;
    }

    /// Returns true if the client has disconnected, or its session was ended.
    pub(crate) fn has_disconnected(&self) -> bool {
        self.session.has_ended()
    }

    /// Returns the token that is cancelled when the session ends.
    pub(crate) fn end_token(&self) -> CancellationToken {
        self.session.end_token()
    }

    /// Cancels the client's calls, and rejects new ones.
    pub(crate) fn disconnect(&self) {
        self.session.end();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.disconnect();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.name()).finish_non_exhaustive()
    }
}
