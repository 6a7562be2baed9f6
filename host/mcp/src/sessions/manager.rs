//! The session manager of one HTTP request: finds and creates the sessions of its caller.

use super::call_stream::{self, CallStream, EventPosition};
use super::error::{ManagerError, SessionRejection};
use super::session::Session;
use super::table::Sessions;
use crate::http::{Caller, ClientAddress, LOG_TARGET};
use crate::messages::in_flight::{Weight, cancelled_request};
use crate::protocol::lifecycle::Dialect;
use futures_core::Stream;
use palisade::internal::Account;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::server_side_http::{ServerSseMessage, session_id};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionWorker, SessionConfig, SessionError, create_local_session,
};
use rmcp::transport::streamable_http_server::{SessionId, SessionManager};
use rmcp::transport::{Transport, WorkerTransport};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The reconnection delay that clients are told.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The sessions of one caller, as one request sees them. The sessions of other callers are hidden.
pub(crate) struct CallerSessions {
    sessions: Sessions,
    caller: Caller,
    address: ClientAddress,
    /// The memory account of the request.
    account: Account,
    dialect: Dialect,
    rejection: OnceLock<SessionRejection>,
    /// The account of the call that the request resumes.
    resumed: OnceLock<Account>,
}

impl CallerSessions {
    /// Creates the view of this caller at a local address, for a request with this memory account.
    pub(crate) fn new(sessions: &Sessions, caller: Caller, account: Account) -> Self {
        Self {
            sessions: sessions.clone(),
            caller,
            address: ClientAddress::Local,
            account,
            dialect: Dialect::Current,
            rejection: OnceLock::new(),
            resumed: OnceLock::new(),
        }
    }

    /// Sets the address of the request. The sessions of each address are bounded together.
    #[must_use]
    pub(crate) fn at(self, address: ClientAddress) -> Self {
        Self { address, ..self }
    }

    /// Sets the dialect of the request: that of the handshake which it is, or otherwise that of the
    /// session which it names.
    #[must_use]
    pub(crate) fn in_dialect(mut self, handshake: Option<Dialect>, session: Option<&str>) -> Self {
        let of_session = || self.find(session?).ok().map(|session| session.dialect());
        self.dialect = handshake.or_else(of_session).unwrap_or(Dialect::Current);
        self
    }

    /// Returns the reconnection delay that the streams of the request begin with. Before 2025-11-25
    /// they do not: an event without data fails these clients.
    pub(crate) fn retry_delay(&self) -> Option<Duration> {
        match self.dialect {
            Dialect::Older => None,
            Dialect::Current => Some(RETRY_DELAY),
        }
    }

    /// Returns true if the caller has a session with this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.find(id).is_ok()
    }

    /// Returns the reason why the request was rejected, if it was.
    pub(crate) fn rejection(&self) -> Option<SessionRejection> {
        self.rejection.get().copied()
    }

    /// Returns the memory account of the call that the request has resumed, if any.
    pub(crate) fn resumed(&self) -> Option<&Account> {
        self.resumed.get()
    }

    fn find(&self, id: &str) -> Result<Arc<Session>, SessionRejection> {
        self.sessions.find(id, self.caller)
    }

    fn find_for_use(&self, id: &str) -> Result<Arc<Session>, SessionRejection> {
        self.sessions.find_for_use(id, self.caller)
    }

    /// Remembers the reason of a rejection: `rmcp` maps all errors to one status.
    fn record_rejection<T>(&self, result: Result<T, ManagerError>) -> Result<T, ManagerError> {
        let rejection = match &result {
            Err(ManagerError::Rejected(rejection)) => *rejection,
            Err(ManagerError::Session(SessionError::SessionServiceTerminated)) => {
                SessionRejection::Gone
            }
            _ => return result,
        };
        let _ = self.rejection.set(rejection);
        result
    }

    fn create(&self) -> Result<(SessionId, RecordingTransport), ManagerError> {
        let id = session_id();
        let (handle, worker) = create_local_session(id.clone(), session_config(self.retry_delay()));
        let session = Session::new((self.caller, self.address), handle, self.dialect);
        let stop = session.stop();
        self.sessions.admit(id.clone(), session.clone())?;
        tracing::debug!(target: LOG_TARGET, "a session over HTTP begins");
        tokio::spawn(self.sessions.clone().expire_when_idle(id.clone(), session.clone()));
        Ok((
            id,
            RecordingTransport { inner: WorkerTransport::spawn_with_ct(worker, stop), session },
        ))
    }

    async fn call(
        &self,
        id: &str,
        mut message: ClientJsonRpcMessage,
    ) -> Result<CallStream, ManagerError> {
        let session = self.find_for_use(id)?;
        let JsonRpcMessage::Request(request) = &message else {
            return Err(ManagerError::NoRequest);
        };
        let weight = Weight::of(&request.request);
        let guard = session.begin_request(request.id.clone(), weight, self.account.clone())?;
        message.insert_extension(session.session_ref());
        // In its own task, so that a client that disconnects meanwhile cannot drop the future
        // halfway.
        tokio::spawn(call_stream::open(guard, message))
            .await
            .unwrap_or_else(|_| Err(SessionRejection::Gone.into()))
    }
}

impl SessionManager for CallerSessions {
    type Error = ManagerError;
    type Transport = RecordingTransport;

    async fn create_session(&self) -> Result<(SessionId, RecordingTransport), ManagerError> {
        self.record_rejection(self.create())
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, ManagerError> {
        let session = self.record_rejection(self.find(id).map_err(ManagerError::from))?;
        message.insert_extension(session.session_ref());
        Ok(session.handle().initialize(message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, ManagerError> {
        Ok(self.has(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), ManagerError> {
        if let Ok(session) = self.find(id) {
            session.end();
            self.sessions.remove(id);
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, ManagerError> {
        self.record_rejection(self.call(id, message).await)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<(), ManagerError> {
        let session = self.record_rejection(self.find_for_use(id).map_err(ManagerError::from))?;
        if let Some(id) = cancelled_request(&message) {
            session.cancel(id);
        }
        session.replies().deliver(&message, &self.account);
        message.insert_extension(session.session_ref());
        self.record_rejection(
            session.handle().push_message(message, None).await.map_err(ManagerError::from),
        )
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, ManagerError> {
        let session = self.record_rejection(self.find_for_use(id).map_err(ManagerError::from))?;
        self.record_rejection(call_stream::listen(session).await)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, ManagerError> {
        let session = self.find_for_use(id)?;
        match EventPosition::parse(&last_event_id) {
            Some(position) => {
                let (stream, of_call) = call_stream::resume(&session, position, &self.account)?;
                let _ = self.resumed.set(of_call);
                Ok(stream)
            }
            None => call_stream::listen_from(session, last_event_id.parse()?).await,
        }
    }
}

/// The transport between a session and `rmcp`, which records the server's requests.
pub(crate) struct RecordingTransport {
    inner: WorkerTransport<LocalSessionWorker>,
    session: Arc<Session>,
}

impl Transport<RoleServer> for RecordingTransport {
    type Error = <WorkerTransport<LocalSessionWorker> as Transport<RoleServer>>::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.session.replies().record_request(&message);
        self.inner.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<ClientJsonRpcMessage>> + Send {
        self.inner.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// Configures a session of `rmcp` without an expiry of its own; [`Sessions::expire_when_idle`] ends
/// it.
fn session_config(retry_delay: Option<Duration>) -> SessionConfig {
    let mut config = SessionConfig::default();
    config.keep_alive = None;
    config.sse_retry = retry_delay;
    // `call_stream::CallSlot` keeps the messages of a finished call, with their memory accounted
    // for.
    config.completed_cache_ttl = Duration::ZERO;
    config
}
