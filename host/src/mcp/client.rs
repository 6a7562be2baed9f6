//! One client: its session, and what it wants to hear.

#![expect(deprecated, reason = "what the next revision will not have, the clients of the older ones still expect")]

use super::changes::{List, Lists, Mark};
use super::documents::Documents;
use crate::host::Host;
use crate::session::Session;
use rmcp::model::LoggingLevel;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Counts clients, so that the ids of calls differ between them: those that clients choose do not.
static CLIENTS: AtomicU64 = AtomicU64::new(1);

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// By its standard input and output.
    Lines,
    /// By HTTP.
    Http,
}

impl Transport {
    /// The name that OpenTelemetry has for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Lines => "pipe",
            Self::Http => "tcp",
        }
    }
}

/// Whoever is at the other end of a connection. Dropped, it ends its calls.
pub(super) struct Client {
    session: Session,
    name: String,
    transport: Transport,
    calls: AtomicU64,
    level: Mutex<LoggingLevel>,
    /// The lists that it was last shown, or could have been when it came.
    shown: Mutex<Lists>,
    /// The documents that it wants to hear of.
    documents: Documents,
    left: CancellationToken,
}

impl Client {
    /// A client that has come this way.
    pub(super) fn new(host: &Host, transport: Transport) -> Self {
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

    /// Tells it from all others, in this process.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn transport(&self) -> Transport {
        self.transport
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// An id that no other call has, of this client or of another.
    pub(super) fn next_call(&self) -> String {
        format!("{}-{}", self.name, self.calls.fetch_add(1, Ordering::Relaxed))
    }

    /// The least that a legacy client wants to hear of. Until it says so, what is worth knowing.
    pub(super) fn level(&self) -> LoggingLevel {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// The lists that it knows.
    pub(super) fn shown(&self) -> Lists {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that it is shown a list.
    pub(super) fn show(&self, list: List, mark: Mark) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).set(list, mark);
    }

    /// Takes it that it knows these lists, but for those that it was shown.
    pub(super) fn expect(&self, lists: Lists) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = shown.or(lists);
    }

    /// The documents that it has subscribed to, as clients of the older revisions do.
    pub(super) fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Comes back when it has left.
    pub(super) async fn left(&self) {
        self.left.cancelled().await;
    }

    /// Ends all that it has begun, and lets it begin nothing more.
    pub(super) fn leave(&self) {
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
