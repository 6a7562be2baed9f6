//! The Model Context Protocol: every client that speaks it can call every tool of a host.
//!
//! The library `rmcp` decides what a message means in which revision; the transports here decide who may send how much; the dispatcher decides what runs. Both
//! revisions are answered side by side: *legacy*, with a handshake and requests in both directions (up to 2025-11-25), and *modern*, where each request stands
//! for itself (2026-07-28).

mod answer;
mod ask;
mod asked;
mod bucket;
mod call;
mod changes;
mod client;
mod content;
mod documents;
mod endpoint;
mod era;
mod frame;
mod guarded;
mod handler;
mod hello;
mod lanes;
mod line;
mod listing;
mod logging;
mod noted;
mod offers;
mod outcome;
mod principals;
mod progress;
mod question;
mod replies;
mod requests;
mod rounds;
mod seal;
mod sessions;
mod short;
mod trace;
mod voice;

use crate::host::Host;
use crate::http;
use client::{Client, Transport};
use endpoint::Endpoint;
use handler::Front;
use lanes::Lanes;
use principals::Principals;
use rmcp::service::QuitReason;
use seal::Sealer;
use std::io::{Read, Write};
use std::net::TcpListener;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// What the log is to say of the protocol's library: nothing. It repeats what clients send, and takes a client that leaves for an error.
pub(crate) const QUIET: &str = "rmcp=off";
/// What turns on the lines about requests, as a filter of the log.
pub(crate) const REQUESTS: &str = "palisade::requests=debug";

/// How long calls that were cancelled at the end are waited for.
const GRACE: Duration = Duration::from_secs(2);

/// How long answers that say so have to get on their way. What the library ends is not answered.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A host as an MCP server. Cloning shares.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

/// What all connections share.
struct Shared {
    host: Arc<Host>,
    settings: Settings,
    /// What the first client to ask was told of changes. All others are told the same.
    announced: OnceLock<Changes>,
    sealer: Sealer,
    principals: Principals,
    /// How many calls are under way.
    calls: watch::Sender<usize>,
    lanes: Lanes,
    /// Cancelled at the end of a server over HTTP: then the calls of all sessions are.
    leaving: CancellationToken,
}

/// A call that is under way. Dropped when it has ended.
struct Underway<'a>(&'a Shared);

impl Shared {
    fn begin(&self) -> Underway<'_> {
        self.calls.send_modify(|calls| *calls += 1);
        Underway(self)
    }

    /// Ends what all clients have begun, and waits until that was answered, but not for ever.
    async fn leave(&self) {
        let is_idle = *self.calls.borrow() == 0;
        self.leaving.cancel();
        self.principals.leave();
        if !is_idle {
            self.idle().await;
            tokio::time::sleep(LAST_WORDS).await;
        }
    }

    /// Waits until every call has ended, but not for ever.
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

/// How a host is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// How long each call may take, at most 600 s; each tool's own time where nothing is said.
    pub timeout: Option<Duration>,
    /// Whether tools may come, change and go while clients are connected.
    pub changes: Changes,
}

/// Whether the tools of a server change while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Changes {
    /// What is loaded stays as it is.
    #[default]
    Never,
    /// The directories of plugins are watched.
    Watched,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Without random numbers nothing can be sealed.
    #[error("the system gives no random numbers: {0}")]
    Randomness(getrandom::Error),
    /// Nobody could connect.
    #[error("cannot listen: {0}")]
    Listener(std::io::Error),
    /// The threads that read and write could not be started.
    #[error("cannot start to read and write: {0}")]
    Thread(#[from] std::io::Error),
    /// The client has left what was written to it unread for too long. What it was told may end in the middle of a line.
    #[error("{}: the connection was given up, perhaps in the middle of an answer", line::Gone::Stalled)]
    Stalled,
}

impl Server {
    /// Serves this host.
    ///
    /// # Errors
    ///
    /// [`ServeError::Randomness`].
    pub fn new(host: Arc<Host>, settings: Settings) -> Result<Self, ServeError> {
        Self::in_lanes(host, settings, Lanes::default())
    }

    /// Serves this host on a runtime of a single thread, where quick calls run in place: no other thread has to be woken up for them. Those that take their time
    /// run on this pool.
    ///
    /// # Errors
    ///
    /// [`ServeError::Randomness`].
    pub fn with_pool(host: Arc<Host>, settings: Settings, pool: Handle) -> Result<Self, ServeError> {
        Self::in_lanes(host, settings, Lanes::with_pool(pool))
    }

    fn in_lanes(host: Arc<Host>, settings: Settings, lanes: Lanes) -> Result<Self, ServeError> {
        let sealer = Sealer::new().map_err(ServeError::Randomness)?;
        let (principals, (calls, _)) = (Principals::default(), watch::channel(0));
        let (leaving, announced) = (CancellationToken::new(), OnceLock::new());
        Ok(Self(Arc::new(Shared { host, settings, announced, sealer, principals, calls, lanes, leaving })))
    }

    /// Serves one client that writes a message a line: until its input ends, it stops reading, or `stop` is cancelled. Its calls are cancelled then.
    ///
    /// Input and output are read and written on threads of their own; one that blocks for ever holds up nobody else, and is not waited for.
    ///
    /// # Errors
    ///
    /// [`ServeError::Thread`]; [`ServeError::Stalled`] where the client takes nothing of an answer for 30 s.
    pub async fn serve_lines(
        &self,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        self.serve_over(stop, |ends| line::Lines::start(input, output, ends)).await
    }

    /// The same over two ends that may be pipes or sockets, which nobody else reads or writes. Those are read and written in place, without threads.
    ///
    /// # Errors
    ///
    /// As for [`serve_lines`](Self::serve_lines).
    #[cfg(unix)]
    pub async fn serve_pipes(
        &self,
        input: OwnedFd,
        output: OwnedFd,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        self.serve_over(stop, |ends| line::Lines::between(input, output, ends)).await
    }

    async fn serve_over(
        &self,
        stop: CancellationToken,
        lines: impl FnOnce(line::Ends) -> std::io::Result<line::Lines>,
    ) -> Result<(), ServeError> {
        let client = Arc::new(Client::new(&self.0.host, Transport::Lines));
        let front = || Front::of_one(self.0.clone(), client.clone());
        let (underway, mut all_answered) = mpsc::channel(1);
        let (short, client, gone) = (Arc::new(front()), client.clone(), Arc::default());
        let ends = line::Ends { short, client, stop: stop.clone(), underway, gone: Arc::clone(&gone) };
        let lines = lines(ends)?;
        let front = front();
        let running = rmcp::service::serve_directly_with_ct(front, lines, None, stop);
        if let Ok(QuitReason::JoinError(error)) | Err(error) = running.waiting().await {
            tracing::error!("the connection ended in a panic: {error}");
        }
        // Whoever listens to events learns how each call ended, and whoever still reads is answered.
        self.0.idle().await;
        let _ = tokio::time::timeout(GRACE, all_answered.recv()).await;
        match gone.get() {
            Some(line::Gone::Stalled) => Err(ServeError::Stalled),
            Some(line::Gone::Closed) | None => Ok(()),
        }
    }

    /// Serves whoever connects to this listener, under the path `/mcp`. Nothing is answered until [`Http::run`] is.
    ///
    /// Called inside of a runtime.
    ///
    /// # Errors
    ///
    /// [`ServeError::Listener`].
    pub fn over_http(&self, listener: TcpListener, settings: http::Settings) -> Result<Http, ServeError> {
        let server = http::Server::new(listener, settings).map_err(ServeError::Listener)?;
        Ok(Http { server, shared: self.0.clone() })
    }
}

/// A server over HTTP that is about to answer.
pub struct Http {
    server: http::Server,
    shared: Arc<Shared>,
}

impl Http {
    /// Where clients find it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.server.address(), endpoint::PATH)
    }

    /// Serves until `stop` is cancelled. Every call is then, too, and whoever waits for it is told so; what is being answered has two seconds.
    pub async fn run(self, stop: CancellationToken) {
        let shared = self.shared.clone();
        let make = move || Ok(Front::over_http(shared.clone()));
        let ended = CancellationToken::new();
        let endpoint = Endpoint::new(make, self.server.hosts(), ended.clone()).within(self.shared.host.limits());
        let door = self.server.door(vec![(endpoint::PATH, Arc::new(endpoint) as Arc<dyn http::Service>)]);
        let leaving = async {
            stop.cancelled().await;
            self.shared.leave().await;
            ended.cancel();
        };
        tokio::join!(self.server.run(door, stop.clone()), leaving);
        // Whoever listens to events learns how each call ended.
        self.shared.idle().await;
    }
}
