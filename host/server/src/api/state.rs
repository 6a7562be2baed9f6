//! The state that all handlers share.

use super::answers::Answers;
use super::async_calls::AsyncCalls;
use super::definitions::DefinitionTexts;
use super::open_sessions::OpenSessions;
use super::problem::ApiError;
use crate::role::Role;
use crate::settings::Settings;
use crate::wiring::Wiring;
use palisade::internal::{Account, client_shares};
use palisade::tool::Digest;
use palisade::{CancellationToken, Host};
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// The number of confirmation requests whose files are read at a time.
const READING: usize = 2;
/// The number of streams of events at a time.
pub(super) const STREAMS: usize = 1024;

/// The state of a server.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) wiring: Wiring,
    pub(crate) settings: Settings,
    pub(super) sessions: OpenSessions,
    pub(super) answers: Arc<Answers>,
    pub(super) async_calls: AsyncCalls,
    pub(super) reading: Arc<Semaphore>,
    pub(super) definitions: DefinitionTexts,
    /// The description of the API, as it is served.
    pub(super) openapi: std::sync::OnceLock<axum::body::Bytes>,
    /// Tells the readers of events that the server ends soon.
    pub(crate) draining: CancellationToken,
    /// Ends the streams of events.
    pub(crate) closing: CancellationToken,
    /// Bounds the streams of events.
    pub(crate) streams: Arc<Semaphore>,
    work: watch::Sender<Work>,
}

pub(crate) type App = Arc<Shared>;

/// The calls that the API runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Work {
    running: usize,
    draining: bool,
}

/// A running call. Dropping it ends the count.
pub(super) struct Running(App);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.work.send_modify(|work| work.running = work.running.saturating_sub(1));
    }
}

impl Shared {
    pub(crate) fn new(host: Arc<Host>, wiring: Wiring, settings: Settings) -> App {
        let sessions = OpenSessions::new(settings.sessions_per_caller);
        Arc::new(Self {
            host,
            wiring,
            settings,
            sessions,
            answers: Arc::default(),
            async_calls: AsyncCalls::default(),
            reading: Arc::new(Semaphore::new(READING)),
            definitions: DefinitionTexts::default(),
            openapi: std::sync::OnceLock::new(),
            draining: CancellationToken::new(),
            closing: CancellationToken::new(),
            streams: Arc::new(Semaphore::new(STREAMS)),
            work: watch::Sender::default(),
        })
    }

    /// Returns an account for a request of this sender whose body has at most this many bytes, within
    /// the memory of all calls.
    pub(super) fn account_for(&self, role: &Role, body: usize) -> Result<Account, ApiError> {
        let sender = role.client().map_or("operators".to_owned(), |id| format!("client {id}"));
        let shares = client_shares(Digest::of(format!("api {sender}").as_bytes()), None);
        let account = Account::of_client(self.host.limits().of_memory(), shares);
        account.reserve(body as u64).map_err(ApiError::NoMemory)?;
        Ok(account)
    }

    /// Counts a call that begins, unless the server ends.
    pub(super) fn begin_work(self: &Arc<Self>) -> Result<Running, ApiError> {
        let mut is_draining = false;
        self.work.send_modify(|work| {
            is_draining = work.draining;
            work.running += 1;
        });
        let running = Running(self.clone());
        if is_draining { Err(ApiError::Draining) } else { Ok(running) }
    }

    pub(crate) fn drain(&self) {
        self.work.send_modify(|work| work.draining = true);
        self.draining.cancel();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.work.borrow().draining
    }

    /// Returns the number of requests whose calls run.
    pub(crate) fn in_flight(&self) -> usize {
        self.work.borrow().running
    }

    /// Waits until no call runs.
    pub(crate) async fn drained(&self) {
        // An error means that no sender is left; `self` holds it.
        let _ = self.work.subscribe().wait_for(|work| work.running == 0).await;
    }

    /// Cancels the calls of all sessions that the API has opened.
    pub(crate) fn cancel_all(&self) -> usize {
        let own = self.sessions.all().into_iter().filter(|open| open.end.is_none());
        own.map(|open| open.session.cancel_all()).sum()
    }
}
