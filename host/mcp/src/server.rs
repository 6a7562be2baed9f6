//! The server: a host behind its transports.

use crate::clients::client::Client;
use crate::clients::client_session::{SessionObserver, TransportKind};
use crate::handler::McpHandler;
use crate::http;
use crate::settings::Settings;
use crate::state::{GRACE, ServerState};
use crate::transport::http::{McpEndpoint, PATH};
use crate::transport::stdio::{Connection, Disconnect, StdioTransport};
use palisade::Host;
use rmcp::service::QuitReason;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A host as an MCP server. Clones share the server.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<ServerState>);

/// An HTTP server that does not answer requests yet.
pub struct Http {
    listener: http::Listener,
    state: Arc<ServerState>,
    beside: Option<Arc<dyn http::Service>>,
}

/// An error when starting or running a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The system provides no random numbers, so that the state of a call cannot be signed.
    #[error("the system gives no random numbers: {0}")]
    Randomness(io::Error),
    /// The listener cannot be used.
    #[error("cannot listen: {0}")]
    Listener(io::Error),
    /// The I/O threads could not be started.
    #[error("cannot start to read and write: {0}")]
    Thread(#[from] io::Error),
    /// The client has not read its output for too long. The output may end in the middle of a line.
    #[error(
        "{}: the connection was given up, perhaps in the middle of an answer",
        Disconnect::Stalled
    )]
    Stalled,
}

impl Server {
    /// Creates a server for this host.
    ///
    /// # Errors
    ///
    /// [`ServeError::Randomness`].
    pub fn new(host: Arc<Host>, settings: Settings) -> Result<Self, ServeError> {
        Self::with(host, settings, None)
    }

    /// Creates a server for this host, and tells an observer of the sessions of its clients: each
    /// before its first call, and at its end.
    ///
    /// # Errors
    ///
    /// [`ServeError::Randomness`].
    pub fn observed(
        host: Arc<Host>,
        settings: Settings,
        observer: Arc<dyn SessionObserver>,
    ) -> Result<Self, ServeError> {
        Self::with(host, settings, Some(observer))
    }

    fn with(
        host: Arc<Host>,
        settings: Settings,
        observer: Option<Arc<dyn SessionObserver>>,
    ) -> Result<Self, ServeError> {
        let state = ServerState::new(host, settings, observer).map_err(ServeError::Randomness)?;
        Ok(Self(Arc::new(state)))
    }

    /// Serves one client over newline-delimited messages, until its input ends, it stops reading,
    /// or `stop` is cancelled. Its in-flight calls are cancelled then.
    ///
    /// Input and output are read and written on their own threads. A thread that blocks forever
    /// delays no other client, and is not joined.
    ///
    /// # Errors
    ///
    /// [`ServeError::Thread`]; [`ServeError::Stalled`] if the client reads nothing of a pending
    /// message for 30 s.
    pub async fn serve_lines(
        &self,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        self.serve_over(stop, |connection| StdioTransport::on_threads(input, output, connection))
            .await
    }

    /// Serves one client like [`serve_lines`](Self::serve_lines), over file descriptors that
    /// nothing else reads or writes. Pipes and sockets are read on the runtime's thread, and
    /// written there as far as they have room; all other I/O runs on threads.
    ///
    /// # Errors
    ///
    /// Same as [`serve_lines`](Self::serve_lines).
    pub async fn serve_pipes(
        &self,
        input: OwnedFd,
        output: OwnedFd,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        self.serve_over(stop, |connection| {
            StdioTransport::over_descriptors(input, output, connection)
        })
        .await
    }

    /// Binds an HTTP server to this listener, with the endpoint at `/mcp`. Requests are answered
    /// once [`Http::run`] runs. Must be called inside a runtime.
    ///
    /// # Errors
    ///
    /// [`ServeError::Listener`].
    pub fn over_http(
        &self,
        listener: TcpListener,
        settings: http::Settings,
    ) -> Result<Http, ServeError> {
        let listener = http::Listener::new(listener, settings).map_err(ServeError::Listener)?;
        Ok(Http { listener, state: self.0.clone(), beside: None })
    }

    /// Takes no more calls from now on: they end as cancelled. Calls in flight go on, and clients
    /// stay connected.
    pub fn drain(&self) {
        self.0.draining.cancel();
    }

    /// Returns the number of calls in flight, including those that wait.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    /// Waits until no call is in flight.
    pub async fn drained(&self) {
        self.0.idle().await;
    }

    async fn serve_over(
        &self,
        stop: CancellationToken,
        transport: impl FnOnce(Connection) -> io::Result<StdioTransport>,
    ) -> Result<(), ServeError> {
        let state = &self.0;
        let client = Arc::new(Client::new(&state.sessions, TransportKind::Stdio));
        let handler = || McpHandler::for_client(state.clone(), client.clone());
        let (fast_calls, mut all_answered) = mpsc::channel(1);
        let disconnect = Arc::default();
        let transport = transport(Connection {
            client: client.clone(),
            limits: state.host.limits(),
            handler: Arc::new(handler()),
            fast_calls,
            stop: stop.clone(),
            disconnect: Arc::clone(&disconnect),
        })?;
        let running = rmcp::service::serve_directly_with_ct(handler(), transport, None, stop);
        if let Ok(QuitReason::JoinError(error)) | Err(error) = running.waiting().await {
            tracing::error!("the connection ended in a panic: {error}");
        }
        // Let cancelled calls end, so that event subscribers see their results and the last
        // responses are written.
        state.wait_until_idle().await;
        let _ = tokio::time::timeout(GRACE, all_answered.recv()).await;
        match disconnect.get() {
            Some(Disconnect::Stalled) => Err(ServeError::Stalled),
            Some(Disconnect::Closed) | None => Ok(()),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl Http {
    /// Returns a URL of the endpoint that the server answers to: for a server on every address, the
    /// loopback address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{PATH}", self.origin())
    }

    /// Returns the origin of the server's own pages, by which clients of this machine reach them.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.listener.reachable())
    }

    /// Returns the origin under which a browser should open the operator's pages: on loopback a
    /// name below `localhost` that no other server has had.
    #[must_use]
    pub fn console_origin(&self) -> String {
        self.listener.console_origin().unwrap_or_else(|| self.origin())
    }

    /// Serves all paths but `/mcp`, and but `/login` and `/logout` if there is an operator, by this
    /// service. It gets the requests that pass the same checks: host, origin, rate and credentials.
    #[must_use]
    pub fn with_fallback(self, service: Arc<dyn http::Service>) -> Self {
        Self { beside: Some(service), ..self }
    }

    /// Returns the logins of the operator, if the settings have one. They count at paths of the
    /// [fallback](Self::with_fallback) only.
    #[must_use]
    pub fn logins(&self) -> Option<http::Logins> {
        self.listener.logins().cloned()
    }

    /// Returns the host names by which clients reach the server, without ports.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        self.listener.leading_hosts()
    }

    /// Serves until `stop` is cancelled. All calls are cancelled then, and in-flight requests have
    /// two seconds to be answered. Streams, and connections that a service has taken over, end when
    /// the calls have.
    pub async fn run(self, stop: CancellationToken) {
        let state = self.state.clone();
        let factory = move || Ok(McpHandler::for_http(state.clone()));
        let ended = CancellationToken::new();
        let endpoint = McpEndpoint::new(factory, self.listener.hosts(), ended.clone());
        let endpoint: Arc<dyn http::Service> = Arc::new(endpoint);
        let beside = self.beside.map(|service| http::Beside { service, ended: ended.clone() });
        let limits = self.state.host.limits();
        let handler = self.listener.handler_beside(vec![(PATH, endpoint)], beside, limits);
        let shut_down = async {
            stop.cancelled().await;
            self.state.shut_down().await;
            ended.cancel();
        };
        tokio::join!(self.listener.run(handler, stop.clone()), shut_down);
        // Let cancelled calls end, so that event subscribers see their results.
        self.state.wait_until_idle().await;
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("url", &self.url()).finish_non_exhaustive()
    }
}
