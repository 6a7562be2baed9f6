//! The session manager of legacy clients over HTTP: limits, ownership and expiry of sessions.
//!
//! The library's own session manager has no limit, does not check who uses a session, and expires a
//! silent session even while its calls run. Only its building blocks are used here. No lock is held
//! across an await point.

mod call_stream;
mod session;

use crate::http::Caller;
use crate::messages::in_flight::{NotTaken, Weight, cancelled};
use crate::telemetry::request_log;
use call_stream::{CallStream, Place};
use futures_core::Stream;

use palisade::internal::Account;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::server_side_http::{ServerSseMessage, session_id};
use rmcp::transport::streamable_http_server::session::local::{
    EventIdParseError, LocalSessionWorker, SessionConfig, SessionError, create_local_session,
};
use rmcp::transport::streamable_http_server::{SessionId, SessionManager};
use rmcp::transport::{Transport, WorkerTransport};
use session::Held;
pub(crate) use session::Seat;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The maximum number of sessions in use: those with a message after `initialize`.
const SESSIONS: usize = 64;
/// The maximum number of sessions not in use yet. They evict each other, so that a client that
/// opens many sessions locks out no other client.
const BEGUN: usize = 256;
/// The idle timeout of a session without in-flight requests and listeners.
const IDLE: Duration = Duration::from_secs(300);
/// The minimum idle time before a session in use can be evicted for another.
const LEFT: Duration = Duration::from_secs(10);
/// The time for a client to resume a call's stream after its connection broke. The call is
/// cancelled after that.
pub(crate) const RESUME: Duration = Duration::from_secs(5);
/// The reconnection delay that clients are told.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// The session table. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<HashMap<SessionId, Arc<Held>>>>);

/// The reason why a session rejects a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is no such session, or it has ended: initialize again")]
    Gone,
    #[error(
        "64 sessions are in use: try again later, and end those that are not needed with DELETE"
    )]
    Full,
    #[error(transparent)]
    NotTaken(#[from] NotTaken),
}

/// An error of the session manager.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Event(#[from] EventIdParseError),
    #[error("only a request has an answer to listen to")]
    NoRequest,
}

/// The sessions of one caller, as one request sees them. The sessions of other callers are hidden.
pub(crate) struct View {
    sessions: Sessions,
    caller: Caller,
    /// The memory account of the request.
    account: Account,
    refusal: OnceLock<Refusal>,
}

impl Sessions {
    /// Returns the view of this caller, for a request with this memory account.
    pub(crate) fn seen_by(&self, caller: Caller, account: Account) -> View {
        View { sessions: self.clone(), caller, account, refusal: OnceLock::new() }
    }

    /// Adds a session that begins, evicting the oldest of its kind above the limit.
    fn admit(&self, id: SessionId, held: Arc<Held>) -> Result<(), Refusal> {
        let mut all = self.all();
        // Reject the client now if it could not use the session anyway.
        let _ = room(&all)?;
        let begun = || all.iter().filter(|(_, held)| !held.is_in_use());
        let oldest = if begun().count() < BEGUN {
            None
        } else {
            begun().min_by_key(|(_, held)| held.touched())
        };
        let oldest = oldest.map(|(id, _)| id.clone()).and_then(|id| all.remove(&id));
        all.insert(id, held);
        drop(all);
        oldest.inspect(|held| held.end());
        Ok(())
    }

    /// Returns the caller's session with this id.
    fn find(&self, id: &str, caller: Caller) -> Result<Arc<Held>, Refusal> {
        let all = self.all();
        let held = all.get(id).filter(|held| held.caller() == caller).ok_or(Refusal::Gone)?;
        held.touch();
        Ok(held.clone())
    }

    /// Returns the session and marks it as in use, evicting an idle one if necessary.
    fn take(&self, id: &str, caller: Caller) -> Result<Arc<Held>, Refusal> {
        let held = self.find(id, caller)?;
        if !held.is_in_use() {
            let mut all = self.all();
            let left = room(&all)?.and_then(|left| all.remove(&left));
            held.put_to_use();
            drop(all);
            left.inspect(|held| held.end());
        }
        Ok(held)
    }

    /// Ends the session once it has been idle for [`IDLE`].
    async fn watch(self, id: SessionId, held: Arc<Held>) {
        loop {
            let wait = IDLE
                .saturating_sub(held.left_since().map_or(Duration::ZERO, |since| since.elapsed()));
            tokio::select! {
                () = held.ended() => break,
                () = tokio::time::sleep(wait) => {}
            }
            // Check and remove under one lock, so that it cannot race with `find`.
            let mut all = self.all();
            if held.left_since().is_some_and(|since| since.elapsed() >= IDLE) {
                all.remove(&id);
                break;
            }
        }
        held.end();
        self.all().remove(&id);
        tracing::debug!(target: request_log::TARGET, "a session over HTTP is over");
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Held>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks the limit of sessions in use. Returns the session to evict, if one is necessary.
fn room(all: &HashMap<SessionId, Arc<Held>>) -> Result<Option<SessionId>, Refusal> {
    let in_use = || all.iter().filter(|(_, held)| held.is_in_use());
    if in_use().count() < SESSIONS {
        return Ok(None);
    }
    let left = in_use().filter_map(|(id, held)| Some((held.left_since()?, id)));
    let longest = left.min().filter(|(since, _)| since.elapsed() >= LEFT);
    longest.map(|(_, id)| Some(id.clone())).ok_or(Refusal::Full)
}

impl View {
    /// Returns true if the caller has a session with this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.find(id).is_ok()
    }

    /// Returns the reason why the request was rejected, if it was.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal.get().copied()
    }

    fn find(&self, id: &str) -> Result<Arc<Held>, Refusal> {
        self.sessions.find(id, self.caller)
    }

    fn take(&self, id: &str) -> Result<Arc<Held>, Refusal> {
        self.sessions.take(id, self.caller)
    }

    /// Remembers the reason for a rejection: the library maps all errors to one status.
    fn refuse<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        let refusal = match &result {
            Err(Failure::Refused(refusal)) => *refusal,
            Err(Failure::Session(SessionError::SessionServiceTerminated)) => Refusal::Gone,
            _ => return result,
        };
        let _ = self.refusal.set(refusal);
        result
    }

    fn create(&self) -> Result<(SessionId, Noting), Failure> {
        let id = session_id();
        let (handle, worker) = create_local_session(id.clone(), config());
        let held = Held::new(self.caller, handle);
        let stop = held.stop();
        self.sessions.admit(id.clone(), held.clone())?;
        tracing::debug!(target: request_log::TARGET, "a session over HTTP begins");
        tokio::spawn(self.sessions.clone().watch(id.clone(), held.clone()));
        Ok((id, Noting { inner: WorkerTransport::spawn_with_ct(worker, stop), held }))
    }

    async fn call(
        &self,
        id: &str,
        mut message: ClientJsonRpcMessage,
    ) -> Result<CallStream, Failure> {
        let held = self.take(id)?;
        let JsonRpcMessage::Request(request) = &message else {
            return Err(Failure::NoRequest);
        };
        let weight = Weight::of(&request.request);
        let flight = held.take_off(request.id.clone(), weight, self.account.clone())?;
        message.insert_extension(held.seat());
        // In its own task, so that a client that disconnects meanwhile cannot drop the future
        // halfway.
        tokio::spawn(call_stream::open(flight, message))
            .await
            .unwrap_or_else(|_| Err(Refusal::Gone.into()))
    }
}

/// The transport between a session and the library, which records the server's requests.
pub(crate) struct Noting {
    inner: WorkerTransport<LocalSessionWorker>,
    held: Arc<Held>,
}

impl Transport<RoleServer> for Noting {
    type Error = <WorkerTransport<LocalSessionWorker> as Transport<RoleServer>>::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.held.replies().sent(&message);
        self.inner.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<ClientJsonRpcMessage>> + Send {
        self.inner.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// Configures a session of the library without an expiry of its own; [`Sessions::watch`] ends it.
fn config() -> SessionConfig {
    let mut config = SessionConfig::default();
    config.keep_alive = None;
    config.sse_retry = Some(RETRY);
    // `call_stream::Slot` keeps the messages of a finished call, with their memory accounted for.
    config.completed_cache_ttl = Duration::ZERO;
    config
}

impl SessionManager for View {
    type Error = Failure;
    type Transport = Noting;

    async fn create_session(&self) -> Result<(SessionId, Noting), Failure> {
        self.refuse(self.create())
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Failure> {
        let held = self.refuse(self.find(id).map_err(Failure::from))?;
        message.insert_extension(held.seat());
        Ok(held.handle().initialize(message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Failure> {
        Ok(self.has(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Failure> {
        if let Ok(held) = self.find(id) {
            held.end();
            self.sessions.all().remove(id);
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Failure> {
        self.refuse(self.call(id, message).await)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<(), Failure> {
        let held = self.refuse(self.take(id).map_err(Failure::from))?;
        if let Some(id) = cancelled(&message) {
            held.cancel(id);
        }
        held.replies().came(&message, &self.account);
        message.insert_extension(held.seat());
        self.refuse(held.handle().push_message(message, None).await.map_err(Failure::from))
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Failure> {
        let held = self.refuse(self.take(id).map_err(Failure::from))?;
        self.refuse(call_stream::listen(held).await)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Failure> {
        let held = self.take(id)?;
        match Place::parse(&last_event_id) {
            Some(place) => call_stream::resume(&held, place),
            None => call_stream::listen_from(held, last_event_id.parse()?).await,
        }
    }
}
