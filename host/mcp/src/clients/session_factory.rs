//! Opens the sessions of clients, under ids that no other run uses.

use super::client_session::{ClientSession, SessionObserver, TransportKind};
use palisade::Host;
use palisade::tool::Digest;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The random bytes by which the sessions of a run are told from those of others: a journal may
/// contain those of many.
const RUN_BYTES: usize = 6;

/// Opens sessions.
pub(crate) struct SessionFactory {
    host: Arc<Host>,
    /// The random part of this run.
    run: String,
    opened: AtomicU64,
    observer: Option<Arc<dyn SessionObserver>>,
}

impl SessionFactory {
    /// Creates a factory for a run.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random numbers.
    pub(crate) fn new(
        host: Arc<Host>,
        observer: Option<Arc<dyn SessionObserver>>,
    ) -> io::Result<Self> {
        let mut random = [0; RUN_BYTES];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let run = random.iter().fold(String::new(), |mut run, byte| {
            let _ = write!(run, "{byte:02x}");
            run
        });
        Ok(Self { host, run, opened: AtomicU64::new(0), observer })
    }

    /// Opens a session with shares of its own: within those of the caller if there is one.
    pub(crate) fn open(&self, transport: TransportKind, caller: Option<Digest>) -> ClientSession {
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let session = self.host.new_session(&format!("mcp-{}-{number}", self.run));
        let session = match caller {
            Some(caller) => session.own_shares_of(caller),
            None => session.own_shares(),
        };
        ClientSession::new(session.build(), transport, self.observer.clone())
    }
}
