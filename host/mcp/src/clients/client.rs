//! The state of one client: its session, its subscriptions, and its log level.

#![expect(
    deprecated,
    reason = "messages that the next revision drops; clients of older revisions expect them"
)]

use super::known_lists::{KnownLists, ListDigest, ListKind};
use super::subscriptions::Subscriptions;
use palisade::tool::Digest;
use palisade::{Host, Session, SessionBuilder};
use rmcp::model::LoggingLevel;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Numbers the clients, so that call ids are unique in the process. Request ids are not: clients
/// choose them.
static CLIENTS: AtomicU64 = AtomicU64::new(1);

/// The transport of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportKind {
    /// Standard input and output.
    Stdio,
    /// HTTP.
    Http,
}

impl TransportKind {
    /// Returns the name in OpenTelemetry's conventions.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "pipe",
            Self::Http => "tcp",
        }
    }
}

/// The client at the other end of a connection. Dropping it cancels its calls.
pub(crate) struct Client {
    session: Session,
    name: String,
    transport: TransportKind,
    next_call: AtomicU64,
    log_level: Mutex<LoggingLevel>,
    /// The lists that the client was last shown, or could have seen when it connected.
    known_lists: Mutex<KnownLists>,
    /// The resources that a stateful client has subscribed to.
    subscriptions: Subscriptions,
    disconnected: CancellationToken,
}

impl Client {
    /// Creates a client with a session of its own, which is a caller with shares of its own.
    pub(crate) fn new(host: &Host, transport: TransportKind) -> Self {
        Self::with(host, transport, SessionBuilder::own_shares)
    }

    /// Creates a client over HTTP with a session of its own, which has shares of its own within
    /// those of this caller.
    pub(crate) fn of_caller(host: &Host, caller: Digest) -> Self {
        Self::with(host, TransportKind::Http, |session| session.own_shares_of(caller))
    }

    fn with(
        host: &Host,
        transport: TransportKind,
        shares: impl FnOnce(SessionBuilder) -> SessionBuilder,
    ) -> Self {
        let name = format!("mcp-{}", CLIENTS.fetch_add(1, Ordering::Relaxed));
        let session = shares(host.new_session(&name)).build();
        Self {
            session,
            name,
            transport,
            next_call: AtomicU64::new(1),
            log_level: Mutex::new(LoggingLevel::Info),
            known_lists: Mutex::default(),
            subscriptions: Subscriptions::default(),
            disconnected: CancellationToken::new(),
        }
    }

    /// Returns a name that is unique in this process.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the transport of the client.
    pub(crate) fn transport(&self) -> TransportKind {
        self.transport
    }

    /// Returns the session of the client's calls.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Returns a call id that is unique in this process.
    pub(crate) fn next_call_id(&self) -> String {
        format!("{}-{}", self.name, self.next_call.fetch_add(1, Ordering::Relaxed))
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
        self.disconnected.cancelled().await;
    }

    /// Cancels the client's calls, and rejects new ones.
    pub(crate) fn disconnect(&self) {
        self.disconnected.cancel();
        self.session.close();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.disconnect();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.name).finish_non_exhaustive()
    }
}
