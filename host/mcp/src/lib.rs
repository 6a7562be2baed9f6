//! The Model Context Protocol server: exposes the tools of a host to MCP clients.
//!
//! The `rmcp` library parses and routes the messages of each protocol revision, the transports here
//! bound the load per client, and the dispatcher runs the calls. Both generations are served side
//! by side: *legacy*, with a handshake and requests in both directions (up to 2025-11-25), and
//! *modern*, where each request is self-contained (2026-07-28).

mod calls;
mod clients;
mod handler;
pub mod http;
mod lists;
mod messages;
mod protocol;
mod questions;
mod rate_limit;
mod sessions;
mod telemetry;
mod transport;

use clients::client::{Client, Transport};
use clients::client_registry::Principals;
use handler::Front;
use palisade::host::Host;
use questions::signed_state::Sealer;
use rmcp::service::QuitReason;
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use transport::http::Endpoint;
use transport::stdio;

/// The log filter that silences `rmcp`: its messages repeat client data, and it reports a
/// disconnected client as an error.
pub const QUIET: &str = "rmcp=off";
/// The log filter that enables the per-request lines.
pub const REQUESTS: &str = "palisade::requests=debug";

/// The grace period for cancelled calls at shutdown.
const GRACE: Duration = Duration::from_secs(2);

/// The time for the last responses to be written at shutdown, before `rmcp` drops its streams
/// without a response.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A host as an MCP server. Clones share the server.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

/// The state shared by all connections.
struct Shared {
    host: Arc<Host>,
    settings: Settings,
    /// The [`Changes`] setting announced to the first client. It is fixed from then on, so that
    /// every client is told the same.
    announced: OnceLock<Changes>,
    sealer: Sealer,
    principals: Principals,
    /// The number of in-flight calls.
    calls: watch::Sender<usize>,
    /// Cancelled at the shutdown of an HTTP server, which cancels the calls of all sessions.
    leaving: CancellationToken,
}

/// A guard that counts one in-flight call.
struct Underway<'a>(&'a Shared);

impl Shared {
    fn begin(&self) -> Underway<'_> {
        self.calls.send_modify(|calls| *calls += 1);
        Underway(self)
    }

    /// Cancels the calls of all clients, and waits up to [`GRACE`] for their responses.
    async fn leave(&self) {
        let is_idle = *self.calls.borrow() == 0;
        self.leaving.cancel();
        self.principals.leave();
        if !is_idle {
            self.idle().await;
            tokio::time::sleep(LAST_WORDS).await;
        }
    }

    /// Waits until no call is in flight, for [`GRACE`] at most.
    async fn idle(&self) {
        let mut calls = self.calls.subscribe();
        let _ = tokio::time::timeout(GRACE, calls.wait_for(|calls| *calls == 0)).await;
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.0.calls.send_modify(|calls| *calls -= 1);
    }
}

/// The server settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The timeout of each call, at most 600 s. Each tool's own timeout applies if `None`.
    pub timeout: Option<Duration>,
    /// Whether tools may be added, changed and removed while clients are connected.
    pub changes: Changes,
}

/// Whether the tools of a server change while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Changes {
    /// The tools that are loaded at the start stay as they are.
    #[default]
    Never,
    /// The plugin directories are watched.
    Watched,
}

/// An error when starting or running a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The system provides no random numbers, so that the state of a call cannot be signed.
    #[error("the system gives no random numbers: {0}")]
    Randomness(getrandom::Error),
    /// The listener cannot be used.
    #[error("cannot listen: {0}")]
    Listener(std::io::Error),
    /// The I/O threads could not be started.
    #[error("cannot start to read and write: {0}")]
    Thread(#[from] std::io::Error),
    /// The client has not read its output for too long. The output may end in the middle of a line.
    #[error(
        "{}: the connection was given up, perhaps in the middle of an answer",
        stdio::Gone::Stalled
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
        let sealer = Sealer::new().map_err(ServeError::Randomness)?;
        let principals = Principals::default();
        let (calls, _) = watch::channel(0);
        let leaving = CancellationToken::new();
        let announced = OnceLock::new();
        Ok(Self(Arc::new(Shared { host, settings, announced, sealer, principals, calls, leaving })))
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
        self.serve_over(stop, |ends| stdio::Lines::start(input, output, ends)).await
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
        self.serve_over(stop, |ends| stdio::Lines::between(input, output, ends)).await
    }

    async fn serve_over(
        &self,
        stop: CancellationToken,
        lines: impl FnOnce(stdio::Ends) -> std::io::Result<stdio::Lines>,
    ) -> Result<(), ServeError> {
        let client = Arc::new(Client::new(&self.0.host, Transport::Lines));
        let front = || Front::of_one(self.0.clone(), client.clone());
        let (underway, mut all_answered) = mpsc::channel(1);
        let short = Arc::new(front());
        let client = client.clone();
        let gone = Arc::default();
        let ends =
            stdio::Ends { short, client, stop: stop.clone(), underway, gone: Arc::clone(&gone) };
        let lines = lines(ends)?;
        let front = front();
        let running = rmcp::service::serve_directly_with_ct(front, lines, None, stop);
        if let Ok(QuitReason::JoinError(error)) | Err(error) = running.waiting().await {
            tracing::error!("the connection ended in a panic: {error}");
        }
        // Let cancelled calls end, so that event subscribers see their results and the last
        // responses are written.
        self.0.idle().await;
        let _ = tokio::time::timeout(GRACE, all_answered.recv()).await;
        match gone.get() {
            Some(stdio::Gone::Stalled) => Err(ServeError::Stalled),
            Some(stdio::Gone::Closed) | None => Ok(()),
        }
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
        Ok(Http { listener, shared: self.0.clone() })
    }
}

/// An HTTP server that does not answer requests yet.
pub struct Http {
    listener: http::Listener,
    shared: Arc<Shared>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Http {
    /// Returns a URL of the endpoint that the server answers to: for a server on every address, the
    /// loopback address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.listener.reachable(), transport::http::PATH)
    }

    /// Returns the host names that requests may name, without ports.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        self.listener.hosts()
    }

    /// Serves until `stop` is cancelled. All calls are cancelled then, and in-flight requests have
    /// two seconds to be answered.
    pub async fn run(self, stop: CancellationToken) {
        let shared = self.shared.clone();
        let make = move || Ok(Front::over_http(shared.clone()));
        let ended = CancellationToken::new();
        let endpoint = Endpoint::new(make, self.listener.hosts(), ended.clone())
            .within(self.shared.host.limits());
        let endpoint: Arc<dyn http::Service> = Arc::new(endpoint);
        let handler = self.listener.handler(vec![(transport::http::PATH, endpoint)]);
        let leaving = async {
            stop.cancelled().await;
            self.shared.leave().await;
            ended.cancel();
        };
        tokio::join!(self.listener.run(handler, stop.clone()), leaving);
        // Let cancelled calls end, so that event subscribers see their results.
        self.shared.idle().await;
    }
}
