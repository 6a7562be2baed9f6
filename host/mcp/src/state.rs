//! The state of a server that all connections share: the host, its settings, the clients, and the
//! number of in-flight calls.

pub(crate) mod list_cache;

use crate::clients::client_registry::ClientRegistry;
use crate::clients::client_session::SessionObserver;
use crate::clients::session_factory::SessionFactory;
use crate::questions::programs::ProgramStore;
use crate::questions::signed_state::StateSigner;
use crate::settings::{Changes, Settings};
use crate::telemetry::operator_log::OperatorLog;
use list_cache::ListCache;
use palisade::Host;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The grace period for cancelled calls at shutdown.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The time for the last responses to be written at shutdown, before `rmcp` drops its streams
/// without a response.
const LAST_RESPONSES: Duration = Duration::from_millis(100);

/// The state shared by all connections.
pub(crate) struct ServerState {
    /// The host, which runs the calls.
    pub(crate) host: Arc<Host>,
    /// The settings of the server.
    pub(crate) settings: Settings,
    /// Signs the state of calls that end with questions.
    pub(crate) signer: StateSigner,
    /// The programs that wait for an answer.
    pub(crate) programs: Arc<ProgramStore>,
    /// Opens the sessions of clients.
    pub(crate) sessions: SessionFactory,
    /// The stateless clients over HTTP.
    pub(crate) clients: ClientRegistry,
    /// The items of the lists.
    pub(crate) lists: ListCache,
    /// Cancelled at the shutdown of an HTTP server, which cancels the calls of all sessions.
    pub(crate) shutdown: CancellationToken,
    /// The [`Changes`] setting announced to the first client. It is fixed from then on, so that
    /// every client is told the same.
    announced: OnceLock<Changes>,
    /// The log for the operator.
    pub(crate) operator_log: OperatorLog,
    /// Cancelled when the server takes no more calls.
    pub(crate) draining: CancellationToken,
    /// The number of in-flight calls.
    calls: watch::Sender<usize>,
}

/// Whether all plugins are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loading {
    /// Some plugins are still loading.
    Running,
    /// All plugins are loaded or rejected.
    Complete,
}

impl ServerState {
    /// Creates the state of a server whose sessions this observer learns of.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random numbers.
    pub(crate) fn new(
        host: Arc<Host>,
        settings: Settings,
        observer: Option<Arc<dyn SessionObserver>>,
    ) -> io::Result<Self> {
        let (calls, _) = watch::channel(0);
        Ok(Self {
            sessions: SessionFactory::new(host.clone(), observer)?,
            host,
            settings,
            signer: StateSigner::new()?,
            programs: Arc::default(),
            clients: ClientRegistry::default(),
            lists: ListCache::default(),
            shutdown: CancellationToken::new(),
            announced: OnceLock::new(),
            operator_log: OperatorLog::default(),
            draining: CancellationToken::new(),
            calls,
        })
    }

    /// Returns whether clients are notified of changes: as announced, or else as configured.
    pub(crate) fn changes(&self) -> Changes {
        *self.announced.get().unwrap_or(&self.settings.changes)
    }

    /// Returns whether all plugins are loaded, without a wait: clients give up after seconds, and
    /// plugins may compile for longer. If some are missing at the first call, changes are
    /// announced, so that clients learn of them.
    pub(crate) fn loading(&self) -> Loading {
        let loading = match self.host.progress().has_ended() {
            true => Loading::Complete,
            false => Loading::Running,
        };
        self.announced.get_or_init(|| match loading {
            Loading::Complete => self.settings.changes,
            Loading::Running => Changes::Watched,
        });
        loading
    }

    /// Counts a call as in flight until the guard is dropped.
    pub(crate) fn begin_call(&self) -> InFlightCall<'_> {
        self.calls.send_modify(|calls| *calls += 1);
        InFlightCall(self)
    }

    /// Returns the number of calls in flight.
    pub(crate) fn in_flight(&self) -> usize {
        *self.calls.borrow()
    }

    /// Cancels the calls of all clients, and waits up to [`GRACE`] for their responses.
    pub(crate) async fn shut_down(&self) {
        let is_idle = self.in_flight() == 0;
        self.shutdown.cancel();
        self.clients.disconnect_all();
        if !is_idle {
            self.wait_until_idle().await;
            tokio::time::sleep(LAST_RESPONSES).await;
        }
    }

    /// Waits until no call is in flight, for [`GRACE`] at most.
    pub(crate) async fn wait_until_idle(&self) {
        let _ = tokio::time::timeout(GRACE, self.idle()).await;
    }

    /// Waits until no call is in flight.
    pub(crate) async fn idle(&self) {
        let _ = self.calls.subscribe().wait_for(|calls| *calls == 0).await;
    }
}

/// A guard that counts one in-flight call.
pub(crate) struct InFlightCall<'a>(&'a ServerState);

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        self.0.calls.send_modify(|calls| *calls -= 1);
    }
}

#[cfg(test)]
mod tests;
