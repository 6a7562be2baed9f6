//! A running server: its transports, and the order of its end.

use super::notify::{State, notify};
use super::router_service::RouterService;
use super::{OverHttp, Way};
use crate::cli::console::link;
use crate::cli::output;
use crate::cli::token::{self, Entry, Holder, Kept, LoginFile};
use palisade_mcp::http::Logins;
use palisade_mcp::{Http, ServeError, Server};
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a server ends.
pub(super) struct Drain {
    /// The time that running calls have to end.
    pub(super) time: Duration,
    /// Cancelled to end them at once.
    pub(super) insisted: CancellationToken,
}

/// The parts of a running server.
pub(super) struct Running<'a> {
    pub(super) server: &'a Server,
    /// The API and the console, if there are any.
    pub(super) operated: Option<&'a palisade_server::Server>,
    pub(super) drain: Drain,
}

impl Running<'_> {
    /// Serves until the token is cancelled, or the input ends.
    pub(super) async fn serve(self, way: Way, stop: CancellationToken) -> Result<(), ServeError> {
        match way {
            Way::Lines(None) => lines(self.server, stop).await,
            Way::Lines(Some(over)) => {
                let ended = CancellationToken::new();
                let (http, _kept) = self.console(*over)?;
                let served = async {
                    let served = lines(self.server, stop).await;
                    ended.cancel();
                    served
                };
                tokio::join!(served, self.run(http, ended.clone())).0
            }
            Way::Http(over) => {
                let (http, _kept) = self.open(*over)?;
                notify(State::Ready);
                self.run(http, stop).await;
                Ok(())
            }
        }
    }

    /// Binds the server, and prints the URL: the caller waits for it.
    fn open(&self, over: OverHttp) -> Result<(Http, [Option<Kept>; 2]), ServeError> {
        let OverHttp { listener, settings, entry, operator, missing } = over;
        let address = listener.local_addr().map_err(ServeError::Listener)?;
        let http = self.server.over_http(listener, settings)?;
        // Store the tokens before the URL is printed, so that a client that reads the URL finds
        // them.
        let kept = keep(&entry, address, Holder::Client);
        let kept_of_operator = keep(&operator, address, Holder::Operator);
        output::note(&format!("serving MCP on {}", http.url()));
        if address.ip().is_unspecified() {
            let hosts = http.hosts().join(", ");
            output::note(&format!("it listens on {address}, and answers to {hosts}"));
        }
        tell_entry(&entry, kept.as_ref());
        missing.into_iter().for_each(output::note);
        if let Some(api) = self.operated {
            restore_logins(&http, address, &operator, api.host().workspace().root());
        }
        tell_console(&http);
        Ok((self.with_api(http), [kept, kept_of_operator].map(|kept| kept.and_then(Result::ok))))
    }

    /// Binds the server of the console beside standard input and output. Its clients' token is
    /// known to nobody.
    fn console(&self, over: OverHttp) -> Result<(Http, Option<Kept>), ServeError> {
        let OverHttp { listener, settings, operator, .. } = over;
        let address = listener.local_addr().map_err(ServeError::Listener)?;
        let http = self.server.over_http(listener, settings)?;
        let kept = keep(&operator, address, Holder::Operator);
        tell_console(&http);
        Ok((self.with_api(http), kept.and_then(Result::ok)))
    }

    fn with_api(&self, http: Http) -> Http {
        match self.operated {
            Some(api) => {
                let service = RouterService::new(api.router(), http.logins());
                http.with_fallback(Arc::new(service))
            }
            None => http,
        }
    }

    /// Serves until the token is cancelled, and then drains: no more calls begin, running ones have
    /// some time to end and are cancelled then. Questions can be answered meanwhile.
    async fn run(&self, http: Http, stop: CancellationToken) {
        let ended = CancellationToken::new();
        let draining = async {
            stop.cancelled().await;
            notify(State::Stopping);
            self.server.drain();
            if let Some(api) = self.operated {
                api.drain();
            }
            tokio::select! {
                () = self.drained() => {}
                () = tokio::time::sleep(self.drain.time) => {}
                () = self.drain.insisted.cancelled() => {}
            }
            if let Some(api) = self.operated {
                api.cancel_all();
                api.end_streams();
            }
            ended.cancel();
        };
        tokio::join!(http.run(ended.clone()), draining);
    }

    async fn drained(&self) {
        self.server.drained().await;
        if let Some(api) = self.operated {
            api.drained().await;
        }
    }
}

/// Stores a generated token, and removes the file of an earlier one otherwise.
fn keep(entry: &Entry, address: SocketAddr, holder: Holder) -> Option<io::Result<Kept>> {
    match entry.made() {
        Some(text) => Some(token::keep(text, address, holder)),
        None => {
            token::forget(address, holder);
            None
        }
    }
}

/// Lets browsers that were logged in at this address, with this token of the operator and in this
/// workspace, stay so. A token that is made for the run ends with it, and so do its logins.
fn restore_logins(http: &Http, address: SocketAddr, operator: &Entry, workspace: &Path) {
    let (Some(logins), Some(token)) = (http.logins(), operator.given()) else { return };
    let place = workspace.as_os_str().as_bytes();
    match LoginFile::of(address) {
        Ok(file) => logins.restore(&token, place, &file.read(), move |text| {
            if let Err(error) = file.write(text) {
                tracing::warn!("the login will end with this server: {error}");
            }
        }),
        Err(error) => tracing::warn!("logins will end with this server: {error}"),
    }
}

/// Prints a link that opens the console.
fn tell_console(http: &Http) {
    match http.logins().as_ref().map(Logins::issue) {
        None => {}
        Some(Ok(code)) => output::note(&format!(
            "console: {} opens once, within 10 minutes; `palisade console {}` prints another link",
            link(&http.origin(), &code),
            http.origin(),
        )),
        Some(Err(error)) => output::note(&format!("there is no link to the console: {error}")),
    }
}

/// Prints the credentials that clients need and cannot know.
fn tell_entry(entry: &Entry, kept: Option<&io::Result<Kept>>) {
    match entry {
        Entry::Given { .. } => {}
        Entry::Open => {
            output::note(
                "every user of this machine can call these tools: --token none leaves the token out",
            );
        }
        Entry::Made { text, .. } => {
            output::note(&format!(
                "clients send `Authorization: Bearer {text}`: a token of this run, since none was given"
            ));
        }
    }
    match kept {
        None => {}
        Some(Ok(kept)) => {
            let path = kept.path().display();
            output::note(&format!(
                "it also stands in {path}, where `palisade mcp config --http` finds it"
            ));
        }
        Some(Err(error)) => output::note(&format!("the token stands in no file: {error}")),
    }
}

async fn lines(server: &Server, stop: CancellationToken) -> Result<(), ServeError> {
    if io::stdin().is_terminal() {
        output::note(
            "serving MCP on standard input, one message a line; end it with Ctrl-D. Clients start this by themselves: see `palisade mcp config`",
        );
    }
    serve_standard(server, stop.child_token()).await
}

/// Serves on the standard streams, without the line buffer of `Stdout`: the server writes whole
/// lines already.
async fn serve_standard(server: &Server, stop: CancellationToken) -> Result<(), ServeError> {
    use std::os::fd::AsFd as _;
    let (input, output) =
        (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    server.serve_pipes(input, output, stop).await
}
