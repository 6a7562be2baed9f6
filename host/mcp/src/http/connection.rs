//! Serves the requests of one connection.

use super::auth::{Auth, Caller, Paths, Place, RequestHead};
use super::connection_limit::{ConnectionLimit, ConnectionPermit};
use super::cors;
use super::credentials::Role;
use super::login::Action;
use super::logins::Logins;
use super::rejection::Rejection;
use super::rejection_log::{Overload, RejectionLog};
use super::response_body::Body;
use super::same_origin;
use super::service::{Beside, Routes, Service};
use super::settings::Settings;
use super::socket::{Socket, SocketHandle};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use palisade::internal::Charge;
use palisade::sandbox::limits::Limits;
use palisade::tool::text::elided;
use std::convert::Infallible;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The log target of the per-request lines, which are logged at level *debug*.
pub(crate) const LOG_TARGET: &str = "palisade::requests";

/// The deadline for a request head. It is also the idle timeout, since the wait for the next head
/// counts.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(10);
/// The maximum size of a request head, in bytes.
const HEAD: usize = 32 << 10;
/// The maximum number of headers in a request.
const HEADERS: usize = 64;
/// The maximum read and write buffer of a connection, in bytes.
const BUFFER: usize = 64 << 10;

/// The maximum number of characters of a rejected request's path in the log.
const MAX_SHOWN: usize = 64;

/// An accepted connection.
pub(super) struct Connection<S, D> {
    pub(super) socket: S,
    /// The address of the client.
    pub(super) from: IpAddr,
    /// Completes when the client disconnects, even while unread bytes are buffered.
    pub(super) disconnected: D,
}

/// The connection handler: passes admitted requests to the services.
pub(crate) struct ConnectionHandler {
    auth: Auth,
    routes: Routes,
    beside: Option<Beside>,
    /// The limit on the connections of clients, if some are kept for the operator.
    clients: Option<ConnectionLimit>,
    http: http1::Builder,
    log: Mutex<RejectionLog>,
}

/// The other end of a connection.
struct Peer {
    from: IpAddr,
    /// The sender of the last request, which may be one that takes over the connection.
    last: Mutex<Caller>,
    /// The right of a client to the connection.
    of_client: OnceLock<ConnectionPermit>,
}

impl Peer {
    fn new(from: IpAddr) -> Self {
        Self { from, last: Mutex::new(Caller::Unauthenticated), of_client: OnceLock::new() }
    }

    /// Counts the connection as one of a client.
    fn count_client(&self, clients: &ConnectionLimit) -> Result<(), Rejection> {
        if self.of_client.get().is_none() {
            let permit = clients.acquire(self.from)?;
            let _ = self.of_client.set(permit);
        }
        Ok(())
    }

    fn set_last_caller(&self, caller: Caller) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = caller;
    }

    fn last_caller(&self) -> Caller {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The service of a request, and the kind of its path.
struct Target {
    place: Place,
    /// `None` for an unknown path, which is refused.
    service: Option<Arc<dyn Service>>,
}

impl ConnectionHandler {
    /// Creates the handler for a server bound to this address. The memory of requests counts
    /// against `limits`.
    pub(crate) fn new(
        settings: &Settings,
        bound: SocketAddr,
        routes: Routes,
        limits: Limits,
    ) -> Self {
        let paths = routes.iter().map(|(path, _)| *path).collect();
        Self {
            auth: Auth::new(settings, bound, paths, limits),
            routes,
            beside: None,
            clients: None,
            http: http_builder(HEAD_TIME),
            log: Mutex::new(RejectionLog::new("a request", Instant::now())),
        }
    }

    /// Sets the service of all other paths.
    pub(crate) fn with_beside(self, beside: Beside) -> Self {
        Self { auth: self.auth.with_paths(Paths::All), beside: Some(beside), ..self }
    }

    /// Sets the limit on the connections of clients.
    pub(super) fn with_client_limit(self, clients: ConnectionLimit) -> Self {
        Self { clients: Some(clients), ..self }
    }

    /// Sets the logins of the operator.
    pub(crate) fn with_logins(self, logins: Logins) -> Self {
        Self { auth: self.auth.with_logins(logins), ..self }
    }

    /// Reserves the memory of a connection: a request head, and the buffer that it is read into.
    pub(super) fn reserve(&self) -> Result<Charge, Rejection> {
        self.auth.account().charge((HEAD + BUFFER) as u64).map_err(Rejection::NoMemory)
    }

    /// Serves a connection until either side closes it. After `stop` is cancelled, no further
    /// requests are read. If the client disconnects, the in-flight request is dropped.
    pub(super) async fn serve<S, D>(&self, connection: Connection<S, D>, stop: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        D: Future<Output = ()>,
    {
        let Connection { socket, from, disconnected } = connection;
        let mut disconnected = pin!(disconnected);
        let (socket, handle) = Socket::new(socket);
        let peer = Peer::new(from);
        let is_connected = self.serve_requests(socket, &peer, disconnected.as_mut(), stop).await;
        if is_connected {
            handle.bound_reads();
            self.keep_taken_over(&handle, disconnected, peer.last_caller()).await;
        }
    }

    /// Serves the requests of a connection. Returns false if the client has disconnected.
    async fn serve_requests<S>(
        &self,
        socket: Socket<S>,
        peer: &Peer,
        disconnected: impl Future<Output = ()>,
        stop: &CancellationToken,
    ) -> bool
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let service = service_fn(move |request| async move {
            Ok::<_, Infallible>(self.answer(request, peer).await)
        });
        let connection = self.http.serve_connection(TokioIo::new(socket), service);
        let mut connection = pin!(connection.with_upgrades());
        let stopped = async {
            tokio::select! {
                ended = connection.as_mut() => return ended,
                () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            connection.await
        };
        tokio::select! {
            biased;
            ended = stopped => {
                if let Err(error) = ended {
                    tracing::debug!("a connection ended early: {error}");
                }
                true
            }
            () = disconnected => {
                tracing::debug!("a client disconnected");
                false
            }
        }
    }

    /// Completes when the socket is gone. Closes it if another protocol has taken it over, and its
    /// client disconnects, the login of the client ends, or the server does.
    async fn keep_taken_over(
        &self,
        socket: &SocketHandle,
        disconnected: impl Future<Output = ()>,
        caller: Caller,
    ) {
        let ended = async {
            match &self.beside {
                Some(beside) => beside.ended.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = socket.dropped() => return,
            () = ended => {}
            () = self.auth.credentials().login_over(caller) => {}
            () = disconnected => {}
        }
        socket.close();
        socket.dropped().await;
    }

    async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<Body> {
        let asked = tracing::enabled!(target: LOG_TARGET, tracing::Level::DEBUG)
            .then(|| format!("{} {}", request.method(), elided(request.uri().path(), MAX_SHOWN)));
        let origin = self.auth.allowed_origin(request.headers());
        let is_beside = self.beside.is_some() && self.named(request.uri().path()).is_none();
        let answered = self.route(request, peer).await;
        self.log_overload(peer.from, &answered);
        let why = answered.as_ref().err().map(|rejection| format!(", {rejection}"));
        let mut response = answered.unwrap_or_else(Rejection::into_response);
        cors::add_headers(response.headers_mut(), origin);
        if is_beside {
            same_origin::add_headers(response.headers_mut());
        }
        // Services log the requests that reach them.
        if let Some(asked) = asked.filter(|_| response.status().is_client_error()) {
            let why = why.unwrap_or_default();
            tracing::debug!(target: LOG_TARGET, "{asked}: refused with {}{why}", response.status());
        }
        response
    }

    /// Logs that the server had no room for a request.
    fn log_overload(&self, from: IpAddr, answered: &Result<Response<Body>, Rejection>) {
        let why: &dyn Display = match answered {
            Err(rejection) if rejection.is_overload() => rejection,
            Err(_) => return,
            Ok(response) => match response.extensions().get() {
                Some(Overload(why)) => why,
                None => return,
            },
        };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.note(from, why, Instant::now());
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> Result<Response<Body>, Rejection> {
        let from = peer.from;
        if cors::is_preflight(&request) {
            return self.auth.preflight(&request);
        }
        if let Some(action) = self.action(&request) {
            return action.answer(&self.auth, request, from).await;
        }
        let (head, body) = request.into_parts();
        let Target { place, service } = self.target(&head);
        let session = |head: &RequestHead, caller| service.as_ref()?.session_of(head, caller);
        let request = Request::from_parts(head, body);
        let admitted = self.auth.admit_at(place, request, from, session).await?;
        let service = service.ok_or_else(|| self.auth.unknown_path())?;
        if let (Some(Role::Client), Some(clients)) = (admitted.role(), &self.clients) {
            peer.count_client(clients)?;
        }
        let caller = admitted.caller();
        peer.set_last_caller(caller);
        let response = service.answer(admitted).await;
        Ok(match (place, &self.beside) {
            (Place::Beside | Place::Stream | Place::Public, Some(beside)) => {
                response.map(|body| body.until(|| self.end_of_stream(beside, caller)))
            }
            _ => response,
        })
    }

    /// Completes when a stream of this caller has to end.
    fn end_of_stream(
        &self,
        beside: &Beside,
        caller: Caller,
    ) -> impl Future<Output = ()> + Send + use<> {
        let ended = beside.ended.clone();
        let login_over = self.auth.credentials().login_over(caller);
        async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = login_over => {}
            }
        }
    }

    /// Returns what a request asks of the server itself.
    fn action(&self, request: &Request<Incoming>) -> Option<Action> {
        let path = request.uri().path();
        Action::at(path).filter(|_| self.beside.is_some() && self.auth.credentials().has_operator())
    }

    fn target(&self, head: &RequestHead) -> Target {
        if let Some(service) = self.named(head.uri.path()) {
            return Target { place: Place::Named, service: Some(service.clone()) };
        }
        let Some(Beside { service, .. }) = &self.beside else {
            return Target { place: Place::Named, service: None };
        };
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        let place = match () {
            () if is_read && service.is_public(head) => Place::Public,
            () if is_read && service.is_stream(head) => Place::Stream,
            () => Place::Beside,
        };
        Target { place, service: Some(service.clone()) }
    }

    fn named(&self, path: &str) -> Option<&Arc<dyn Service>> {
        self.routes.iter().find(|(route, _)| *route == path).map(|(_, service)| service)
    }
}

/// Returns the settings of a connection, with the bounds on its memory and on the time for a head.
pub(super) fn http_builder(head_time: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_time);
    http.max_header_size(HEAD).max_headers(HEADERS).max_buf_size(BUFFER);
    http
}

#[cfg(test)]
impl ConnectionHandler {
    /// Serves a single in-memory connection.
    pub(crate) async fn serve_stream<S>(&self, socket: S, from: IpAddr, stop: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let disconnected = std::future::pending();
        self.serve(Connection { socket, from, disconnected }, stop).await;
    }
}

#[cfg(test)]
mod beside_tests;
#[cfg(test)]
mod tests;
