//! The state of one client: its session, its subscriptions, and its log level.

#![expect(
    deprecated,
    reason = "what the next revision will not have, the clients of the older ones still expect"
)]

use crate::clients::subscriptions::Documents;
use crate::lists::changes::{List, Lists, Mark};
use palisade::host::Host;
use palisade::session::Session;
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
pub(crate) enum Transport {
    /// Standard input and output.
    Lines,
    /// HTTP.
    Http,
}

impl Transport {
    /// Returns the name in OpenTelemetry's conventions.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lines => "pipe",
            Self::Http => "tcp",
        }
    }
}

/// The client at the other end of a connection. Dropping it cancels its calls.
pub(crate) struct Client {
    session: Session,
    name: String,
    transport: Transport,
    calls: AtomicU64,
    level: Mutex<LoggingLevel>,
    /// The lists that the client was last shown, or could have seen when it connected.
    shown: Mutex<Lists>,
    /// The resources that a legacy client has subscribed to.
    documents: Documents,
    left: CancellationToken,
}

impl Client {
    /// Creates a client with a session of its own.
    pub(crate) fn new(host: &Host, transport: Transport) -> Self {
        let name = format!("mcp-{}", CLIENTS.fetch_add(1, Ordering::Relaxed));
        let session = host.new_session(&name).build();
        Self {
            session,
            name,
            transport,
            calls: AtomicU64::new(1),
            level: Mutex::new(LoggingLevel::Info),
            shown: Mutex::default(),
            documents: Documents::default(),
            left: CancellationToken::new(),
        }
    }

    /// Returns a name that is unique in this process.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn transport(&self) -> Transport {
        self.transport
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Returns a call id that is unique in this process.
    pub(crate) fn next_call(&self) -> String {
        format!("{}-{}", self.name, self.calls.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the minimum log level of a legacy client; `info` unless the client has set one.
    pub(crate) fn level(&self) -> LoggingLevel {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Returns the lists that the client knows.
    pub(crate) fn shown(&self) -> Lists {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the client is shown a list.
    pub(crate) fn show(&self, list: List, mark: Mark) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).set(list, mark);
    }

    /// Records these lists as known, except for the ones the client has been shown.
    pub(crate) fn expect(&self, lists: Lists) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = shown.or(lists);
    }

    /// Returns the resources that a legacy client has subscribed to.
    pub(crate) fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Completes when the client has left.
    pub(crate) async fn left(&self) {
        self.left.cancelled().await;
    }

    /// Cancels the client's calls, and rejects new ones.
    pub(crate) fn leave(&self) {
        self.left.cancel();
        self.session.close();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.name).finish_non_exhaustive()
    }
}
