//! A running server: its transports, and the order of its end.

use super::drain::{Begun, Drain, Ended};
use super::notify::{Readers, State, notify};
use super::router_service::RouterService;
use super::{OverHttp, Way};
use crate::cli::console::link;
use crate::cli::output;
use crate::cli::token::{self, Entry, Holder, Kept, LoginFile};
use palisade_mcp::{Http, ServeError, Server};
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The parts of a running server.
pub(super) struct Running<'a> {
    pub(super) server: &'a Server,
    /// The API and the console, if there are any.
    pub(super) operated: Option<&'a palisade_server::Server>,
    pub(super) drain: Drain,
}

impl Running<'_> {
    /// Serves until the token is cancelled, or the input ends. A server over HTTP drains then, and
    /// says so; returns how that ended.
    pub(super) async fn serve(
        self,
        way: Way,
        stop: CancellationToken,
    ) -> Result<Option<Ended>, ServeError> {
        match way {
            Way::Lines(None) => lines(self.server, stop).await.map(|()| None),
            Way::Lines(Some(over)) => {
                let ended = CancellationToken::new();
                let (http, _kept) = self.console(*over)?;
                let served = async {
                    let served = lines(self.server, stop).await;
                    ended.cancel();
                    served
                };
                tokio::join!(served, self.run(http, ended.clone(), |_| {})).0.map(|()| None)
            }
            Way::Http(over) => {
                let (http, _kept) = self.open(*over)?;
                notify(State::Ready);
                let tell = |begun: Begun| output::note(&begun.to_string());
                Ok(Some(self.run(http, stop, tell).await))
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
        tell_console(&http, &operator);
        Ok((self.with_api(http), [kept, kept_of_operator].map(|kept| kept.and_then(Result::ok))))
    }

    /// Binds the server of the console beside standard input and output. Its clients' token is
    /// known to nobody.
    fn console(&self, over: OverHttp) -> Result<(Http, Option<Kept>), ServeError> {
        let OverHttp { listener, settings, operator, .. } = over;
        let address = listener.local_addr().map_err(ServeError::Listener)?;
        let http = self.server.over_http(listener, settings)?;
        let kept = keep(&operator, address, Holder::Operator);
        tell_console(&http, &operator);
        Ok((self.with_api(http), kept.and_then(Result::ok)))
    }

    fn with_api(&self, http: Http) -> Http {
        match self.operated {
            Some(api) => {
                let service =
                    RouterService::new(api.router(), http.logins(), http.console_origin());
                http.with_fallback(Arc::new(service))
            }
            None => http,
        }
    }

    /// Serves until the token is cancelled, and then drains: no more calls begin, running ones have
    /// some time to end and are cancelled then. Questions can be answered meanwhile.
    async fn run(&self, http: Http, stop: CancellationToken, tell: impl FnOnce(Begun)) -> Ended {
        let ended = CancellationToken::new();
        let draining = async {
            stop.cancelled().await;
            notify(State::Stopping);
            self.server.drain();
            if let Some(api) = self.operated {
                api.drain();
            }
            tell(Begun { running: self.in_flight(), time: self.drain.time });
            let how = self.drain.wait(self.drained(), || self.in_flight()).await;
            if let Some(api) = self.operated {
                api.cancel_all();
                api.end_streams();
            }
            ended.cancel();
            how
        };
        tokio::join!(http.run(ended.clone()), draining).1
    }

    /// Returns the number of requests whose calls run or wait.
    fn in_flight(&self) -> usize {
        self.server.in_flight() + self.operated.map_or(0, palisade_server::Server::in_flight)
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

/// Prints a link that opens the console, or how to get one if others may read the output.
fn tell_console(http: &Http, operator: &Entry) {
    let Some(logins) = http.logins() else { return };
    let command = command(&http.origin(), operator);
    if Readers::of_output() == Readers::Others {
        return output::note(&format!(
            "console: `{command}` prints a link for the user who runs this server"
        ));
    }
    match logins.issue() {
        Ok(code) => output::note(&format!(
            "console: {} opens once, within 10 minutes; `{command}` prints another link",
            link(&http.console_origin(), &code),
        )),
        Err(error) => output::note(&format!("there is no link to the console: {error}")),
    }
}

/// Returns the command that prints a link to the console. A token that was given is kept nowhere,
/// so the command names its file.
fn command(origin: &str, operator: &Entry) -> String {
    let file = match operator {
        Entry::Given { file: Some(file), .. } => {
            format!(" --token-file {}", palisade_trust::shell_word(&file.display().to_string()))
        }
        Entry::Given { file: None, .. } | Entry::Made { .. } | Entry::Open => String::new(),
    };
    format!("palisade console {origin}{file}")
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
        Entry::Made { .. } if Readers::of_output() == Readers::Others => {
            output::note("clients send a token of this run, since none was given");
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
