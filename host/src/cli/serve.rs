//! `palisade serve`: the tools, for every client that speaks the Model Context Protocol.

use super::args::{Common, Serve as Args};
use super::exit::{Exit, Failure};
use super::running::{Tools, Wanted, drive};
use super::signals::Signals;
use super::{open, output};
use crate::host::Host;
use crate::http;
use crate::mcp::{Changes, ServeError, Server, Settings};
use crate::plugins::{Plugin, Rescan};
use crate::tool::text::elided;
use std::io::{self, IsTerminal as _, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// The variable that may hold the token.
const TOKEN: &str = "PALISADE_SERVE_TOKEN";
/// The longest file of a token, in bytes.
const TOKEN_FILE: u64 = 4096;

/// How a token is given.
const TOKEN_IS: &str = "a token is given with --token-file FILE, and `openssl rand -hex 32 > FILE` makes one";
/// What is missing where no name of the server is given.
const UNNAMED: &str = "requests are answered only where they name the server as it knows itself, so give each name or address by which other machines \
                       reach it with --host, such as --host tools.example";

/// How clients come.
enum Way {
    Lines,
    /// With what others need to reach it, and nobody has said.
    Http(TcpListener, http::Settings, Option<&'static str>),
}

pub(super) fn run(common: &Common, args: &Args, signals: &Signals) -> Result<Exit, Failure> {
    // What is wrong with the address is told before anything is loaded.
    let way = way(args)?;
    let tools = Tools::open(common, &args.running, Wanted::Served)?;
    let changes = if args.watch { Changes::Watched } else { Changes::Never };
    let settings = Settings { timeout: args.running.timeout, changes, ..Settings::default() };
    let pool = runtime(&mut Builder::new_multi_thread())?;
    let server = Server::with_pool(tools.host.clone(), settings, pool.handle().clone())?;
    // From here on, though clients come later: whatever is put there is found.
    let _watch = args.watch.then(|| tools.host.watch(show_changes)).transpose()?;
    let host = tools.host.clone();
    let served = drive(signals, runtime(&mut Builder::new_current_thread())?, async |told| {
        tokio::spawn(tell_missing(host, changes));
        serve(&server, way, told.clone()).await.map(|()| told.is_cancelled())
    })?;
    pool.shutdown_background();
    tools.finish_events();
    Ok(if served? { Exit::Interrupted } else { Exit::Ok })
}

fn runtime(builder: &mut Builder) -> Result<Runtime, Failure> {
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| Failure::new(Exit::Internal, format!("cannot start to serve: {error}")))
}

fn way(args: &Args) -> Result<Way, Failure> {
    let Some(address) = args.http else { return Ok(Way::Lines) };
    // All of it at once, so that nobody learns of it piece by piece.
    let missing = missing(address, &args.host);
    let settings = http::Settings::new(address, token(args.token_file.as_deref())?).map_err(|error| {
        Failure::usage([&error.to_string(), TOKEN_IS].into_iter().chain(missing).collect::<Vec<_>>().join("; "))
    })?;
    let settings = args.host.iter().try_fold(settings, |settings, host| settings.with_host(host));
    let settings = settings
        .and_then(|settings| args.origin.iter().try_fold(settings, |settings, origin| settings.with_origin(origin)));
    Ok(Way::Http(listen(address)?, settings.map_err(Failure::usage)?, missing))
}

/// What others would still be refused for, once there is a token: the address of all interfaces is no name that a request can bear.
fn missing(address: SocketAddr, hosts: &[String]) -> Option<&'static str> {
    (address.ip().is_unspecified() && hosts.is_empty()).then_some(UNNAMED)
}

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| {
        Failure::usage(format!("cannot listen on {address}: {error}; --http 127.0.0.1:0 takes a free port"))
    })
}

/// A token is never an argument: everybody on the machine sees those.
fn token(file: Option<&Path>) -> Result<Option<http::Token>, Failure> {
    let (text, place) = match (file, std::env::var_os(TOKEN)) {
        (Some(file), _) => (from_file(file)?, file.display().to_string()),
        (None, Some(text)) => (text.to_string_lossy().into_owned(), TOKEN.to_owned()),
        (None, None) => return Ok(None),
    };
    let token = http::Token::new(text.trim_end_matches(['\r', '\n']));
    token.map(Some).map_err(|refused| Failure::usage(format!("{place}: {refused}")))
}

fn from_file(file: &Path) -> Result<String, Failure> {
    let failure = |error| Failure::usage(format!("cannot read the token in `{}`: {error}", file.display()));
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(failure)?;
    opened.take(TOKEN_FILE).read_to_string(&mut text).map_err(failure)?;
    Ok(text)
}

/// Where it serves is told before all else: whoever starts this waits for it.
async fn serve(server: &Server, way: Way, stop: CancellationToken) -> Result<(), ServeError> {
    match way {
        Way::Lines => lines(server, stop).await,
        Way::Http(listener, settings, missing) => {
            let http = server.over_http(listener, settings)?;
            output::note(&format!("serving MCP on {}", http.url()));
            missing.into_iter().for_each(output::note);
            http.run(stop).await;
            Ok(())
        }
    }
}

/// Says what has changed where plugins come from.
fn show_changes(rescan: &Rescan) {
    for (plugins, what) in [(&rescan.loaded, "loaded"), (&rescan.changed, "changed"), (&rescan.removed, "removed")] {
        plugins.iter().for_each(|plugin| output::note(&format!("{what} {}: {}", plugin.file(), tools_of(plugin))));
    }
    open::show_rejected(&rescan.rejected);
}

fn tools_of(plugin: &Plugin) -> String {
    /// The longest list of tools that is shown, in characters.
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

/// Standard output without the buffer that breaks at line ends: what is written is whole lines already.
#[cfg(unix)]
async fn serve_standard(server: &Server, stop: CancellationToken) -> Result<(), ServeError> {
    use std::os::fd::AsFd as _;
    let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    server.serve_pipes(input, output, stop).await
}

#[cfg(not(unix))]
async fn serve_standard(server: &Server, stop: CancellationToken) -> Result<(), ServeError> {
    server.serve_lines(io::stdin(), io::stdout(), stop).await
}

/// Clients are answered while plugins are still compiled; what was refused is told once that is known. A directory that is watched may well be empty at first.
async fn tell_missing(host: Arc<Host>, changes: Changes) {
    host.loaded().await;
    match changes {
        Changes::Watched => open::show_rejected(&host.rejected()),
        Changes::Never => open::show_missing(&host),
    }
}
