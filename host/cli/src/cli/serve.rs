//! `palisade serve`: serves the tools to clients of the Model Context Protocol.

use super::args::{Common, Serve as Args};
use super::exit::{Exit, Failure};
use super::signals::Signals;
use super::token::{self, Entry, Kept};
use super::tool_session::{Tools, Wanted, drive};
use super::unused_rules::{self, Told};
use super::{output, setup};
use crate::config;
use palisade::Host;
use palisade::plugins::{Plugin, Rescan};
use palisade::tool::text::elided;
use palisade_mcp::http;
use palisade_mcp::{Changes, ServeError, Server, Settings};
use std::io::{self, IsTerminal as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// The advice for a server that needs a token.
const TOKEN_IS: &str = "leave out `--token none`, and a token is made; --token-file FILE gives one";
/// The advice if no host name was given.
const UNNAMED: &str = "requests are answered only where they name the server as it knows itself, so give each name or address by which other machines \
                       reach it with --host, such as --host tools.example";

/// The transport.
enum Way {
    Lines,
    Http(Box<OverHttp>),
}

/// The parameters of the HTTP transport.
struct OverHttp {
    listener: TcpListener,
    settings: http::Settings,
    entry: Entry,
    /// Advice on an option that remote clients need and the command line lacks.
    missing: Option<&'static str>,
}

impl Way {
    /// Returns the token file, if one was given.
    fn secret(&self) -> Option<&Path> {
        match self {
            Self::Lines => None,
            Self::Http(http) => http.entry.file(),
        }
    }
}

pub(super) fn run(common: &Common, args: &Args, signals: &Signals) -> Result<Exit, Failure> {
    // Report a wrong address before anything is loaded.
    let way = way(args)?;
    let tools = Tools::open(common, &args.running, Wanted::Served { secret: way.secret() })?;
    let changes = if args.watch { Changes::Watched } else { Changes::Never };
    let mut settings = Settings::default();
    settings.timeout = args.running.timeout;
    settings.changes = changes;
    let server = Server::new(tools.host.clone(), settings)?;
    // Start watching before the first client connects, so that no change is missed.
    let _watch = args.watch.then(|| tools.host.watch(show_changes)).transpose()?;
    let host = tools.host.clone();
    let rules = tools.settings.clone();
    let served = drive(signals, runtime()?, async |told| {
        tokio::spawn(tell_missing(common.clone(), host, changes, rules));
        serve(&server, way, told.clone()).await.map(|()| told.is_cancelled())
    })?;
    tools.finish_events();
    Ok(if served? { Exit::Interrupted } else { Exit::Ok })
}

fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(Exit::Internal, format!("cannot start to serve: {error}")))
}

fn way(args: &Args) -> Result<Way, Failure> {
    let Some(address) = args.http else { return Ok(Way::Lines) };
    // Report all problems together.
    let entry = Entry::of(args)?;
    let missing = missing(address, &args.host);
    let settings = http::Settings::new(address, entry.access()).map_err(|error| {
        Failure::usage(
            [&error.to_string(), TOKEN_IS]
                .into_iter()
                .chain(missing)
                .collect::<Vec<_>>()
                .join("; "),
        )
    })?;
    let settings = args.host.iter().try_fold(settings, |settings, host| settings.with_host(host));
    let settings = settings.and_then(|settings| {
        args.origin.iter().try_fold(settings, |settings, origin| settings.with_origin(origin))
    });
    let settings = settings.map_err(Failure::usage)?;
    Ok(Way::Http(Box::new(OverHttp { listener: listen(address)?, settings, entry, missing })))
}

/// Returns the advice for a server that remote clients still could not reach: no request can name
/// the wildcard address as its host.
fn missing(address: SocketAddr, hosts: &[String]) -> Option<&'static str> {
    (address.ip().is_unspecified() && hosts.is_empty()).then_some(UNNAMED)
}

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| {
        Failure::usage(format!(
            "cannot listen on {address}: {error}; --http 127.0.0.1:0 takes a free port"
        ))
    })
}

/// Serves until the token is cancelled. Prints the URL first, because the caller waits for it.
async fn serve(server: &Server, way: Way, stop: CancellationToken) -> Result<(), ServeError> {
    match way {
        Way::Lines => lines(server, stop).await,
        Way::Http(over) => {
            let OverHttp { listener, settings, entry, missing } = *over;
            let address = listener.local_addr().map_err(ServeError::Listener)?;
            let http = server.over_http(listener, settings)?;
            // Store the token before the URL is printed, so that a client that reads the URL finds
            // it.
            let kept = match entry.made() {
                Some(text) => Some(token::keep(text, address)),
                None => {
                    token::forget(address);
                    None
                }
            };
            output::note(&format!("serving MCP on {}", http.url()));
            if address.ip().is_unspecified() {
                output::note(&format!(
                    "it listens on {address}, and answers to {}",
                    http.hosts().join(", ")
                ));
            }
            tell_entry(&entry, kept.as_ref());
            missing.into_iter().for_each(output::note);
            http.run(stop).await;
            Ok(())
        }
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

/// Reports changes of plugins.
fn show_changes(rescan: &Rescan) {
    for (plugins, what) in
        [(&rescan.loaded, "loaded"), (&rescan.changed, "changed"), (&rescan.removed, "removed")]
    {
        plugins.iter().for_each(|plugin| {
            output::note(&format!("{what} {}: {}", plugin.file(), tools_of(plugin)));
        });
    }
    setup::show_rejected(&rescan.rejected);
}

fn tools_of(plugin: &Plugin) -> String {
    /// Maximum length of the shown tool list, in characters.
    const MAX_TOOLS: usize = 1_024;
    let tools: Vec<&str> = plugin.definitions().iter().map(|tool| tool.name().as_str()).collect();
    elided(&tools.join(", "), MAX_TOOLS)
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

/// Reports rejected plugins and idle rules once loading is complete; clients are answered
/// meanwhile. A watched directory may be empty at first.
async fn tell_missing(common: Common, host: Arc<Host>, changes: Changes, rules: config::Settings) {
    host.wait_until_loaded().await;
    unused_rules::show(&common, &rules, &host, Told::Slips);
    unused_rules::show_unbound(&rules, &host, None);
    match changes {
        Changes::Watched => setup::show_rejected(&host.rejected()),
        Changes::Never => setup::show_missing(&host),
    }
}
