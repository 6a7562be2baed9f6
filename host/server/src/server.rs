//! The server: its router, and its end.

use crate::api::{self, App, AttachedSession, Shared};
use crate::confirmations::OperatorConfirmer;
use crate::journal::Journal;
use crate::settings::Settings;
use crate::wiring::Wiring;
use axum::Router;
use palisade::Host;
use std::fmt;
use std::sync::Arc;

/// The HTTP API and the console of a host. It opens no socket: a program mounts its
/// [`router`](Self::router), and inserts a [`Role`](crate::Role) into every request that it has
/// authenticated.
///
/// ```no_run
/// use palisade::Host;
/// use palisade_server::journal::{Journal, JournalSettings};
/// use palisade_server::{Attached, RecorderSettings, Server, Settings, Wiring};
/// use std::sync::Arc;
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let journal = Journal::temporary(JournalSettings::default())?;
/// let wiring = Wiring::new(journal, RecorderSettings::default(), Attached::WhileWatched);
/// let host = wiring.wire(Host::builder()).workspace(".").build()?;
/// let server = Server::new(Arc::new(host), wiring, Settings::default());
/// let router: axum::Router = server.router();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Server(App);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("host", &self.0.host).finish_non_exhaustive()
    }
}

impl Server {
    /// Creates the server of a host that was built with the same [`Wiring`].
    #[must_use]
    pub fn new(host: Arc<Host>, wiring: Wiring, settings: Settings) -> Self {
        Self(Shared::new(host, wiring, settings))
    }

    /// Returns the router. Only `/`, `/console/*`, `/healthz`, `/readyz` and `/openapi.json` answer
    /// requests without a [`Role`](crate::Role). It has no `/login` and `/logout`, which the
    /// console uses: signing in and out is the program's own.
    pub fn router(&self) -> Router {
        api::router(self.0.clone())
    }

    /// Returns the confirmer that asks the attached operators.
    #[must_use]
    pub fn confirmer(&self) -> &Arc<OperatorConfirmer> {
        self.0.wiring.confirmer()
    }

    /// Returns the journal.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        self.0.wiring.journal()
    }

    /// Returns the host.
    #[must_use]
    pub fn host(&self) -> &Arc<Host> {
        &self.0.host
    }

    /// Takes a session that something else than the API has opened, such as an MCP server. To be
    /// called before its first call: the journal learns of the session then, and the API and the
    /// console show it, and let operators cancel its calls and close it.
    pub fn attach(&self, session: AttachedSession) {
        self.0.attach(session);
    }

    /// Records that an attached session has ended. Does nothing for any other id.
    pub fn detach(&self, id: &str) {
        self.0.detach(id);
    }

    /// Closes all sessions and records it, as the last step before the journal is closed.
    pub fn close_sessions(&self) {
        self.0.close_sessions();
    }

    /// Takes no more calls and sessions from now on; `/readyz` says so. Running calls go on.
    pub fn drain(&self) {
        self.0.drain();
    }

    /// Returns the number of requests of the API whose calls run or wait.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    /// Waits until no call of the API runs.
    pub async fn drained(&self) {
        self.0.drained().await;
    }

    /// Cancels the calls of all sessions that the API has opened, and returns their number.
    pub fn cancel_all(&self) -> usize {
        self.0.cancel_all()
    }

    /// Ends all streams of events, as the last step before the program stops serving. Their readers
    /// continue where they were when the next server runs.
    pub fn end_streams(&self) {
        self.0.closing.cancel();
    }
}
