//! `palisade serve`: serves the tools to clients of the Model Context Protocol.

mod drain;
mod mcp_sessions;
mod mounted;
mod notify;
mod operator;
mod router_service;
mod running;

pub(super) use operator::Operated;
pub(super) use router_service::LOGINS;

use super::args::{Answerer, Common, Programs, Serve as Args};
use super::exit::{Exit, Failure};
use super::signals::Signals;
use super::token::Entry;
use super::tool_session::{Prints, Served, Tools, Wanted, drive};
use super::unused_rules::{self, Told};
use super::{grants, output, setup};
use crate::config;
use drain::Drain;
use mcp_sessions::McpSessions;
use palisade::Host;
use palisade::internal::multi_thread_runtime;
use palisade::plugins::{Plugin, Rescan};
use palisade::tool::text::elided;
use palisade_mcp::http::{self, Access};
use palisade_mcp::{Changes, ConfirmedBy, Server, Settings};
use running::Running;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The connections that the system keeps before they are accepted, which its own limit bounds.
const BACKLOG: i32 = 4_096;
/// The advice for a server that needs a token.
const TOKEN_IS: &str = "leave out `--token none`, and a token is made; --token-file FILE gives one";
/// The advice if no host name was given.
const UNNAMED: &str = "requests are answered only where they name the server as it knows itself, so give each name or address by which other machines \
                       reach it with --host, such as --host tools.example";

/// The transport.
enum Way {
    Lines(Option<Box<OverHttp>>),
    Http(Box<OverHttp>),
}

/// The parameters of the HTTP transport, and of the console beside standard input and output.
struct OverHttp {
    listener: TcpListener,
    settings: http::Settings,
    entry: Entry,
    operator: Entry,
    /// Advice on an option that remote clients need and the command line lacks.
    missing: Option<&'static str>,
}

impl Way {
    fn over_http(&self) -> Option<&OverHttp> {
        match self {
            Self::Lines(http) => http.as_deref(),
            Self::Http(http) => Some(http),
        }
    }

    /// Returns the name of the console, for refusals. A model reads them, and with a shell of its
    /// own it could run a command that makes it the operator.
    fn console(&self) -> String {
        match self {
            Self::Lines(None) => "`palisade serve --console`".to_owned(),
            Self::Lines(Some(http)) | Self::Http(http) => match http.listener.local_addr() {
                Ok(address) => format!("`http://{address}`"),
                Err(_) => "of the operator".to_owned(),
            },
        }
    }

    /// Returns the token files that were given.
    fn secrets(&self) -> Vec<&Path> {
        let entries = self.over_http().map(|http| [&http.entry, &http.operator]);
        entries.into_iter().flatten().filter_map(Entry::file).collect()
    }
}

pub(super) fn run(common: &Common, args: &Args, signals: &Signals) -> Result<Exit, Failure> {
    // Report a wrong address before anything is loaded.
    let way = way(args)?;
    let confirmed_by = confirmed_by(args.answers, &way)?;
    let wiring = operator::wiring(common, args, way.over_http().is_some())?;
    let served = Served { secrets: way.secrets(), operated: wiring.as_ref() };
    let programs = match args.code_mode {
        true => Programs::InPlaceOfTools,
        false => common.programs,
    };
    let common = &Common { programs, ..common.clone() };
    let tools = Tools::open(common, &args.running, Wanted::Served(&served), Prints::Text)?;
    if args.code_mode {
        grants::refuse_other_programs(&tools.host)?;
    }
    let changes = if args.watch { Changes::Watched } else { Changes::Never };
    let mut settings = Settings::default();
    settings.timeout = args.running.timeout;
    settings.changes = changes;
    settings.console = Some(way.console());
    settings.confirmed_by = confirmed_by;
    let operated =
        wiring.as_ref().map(|operated| operated.server(&tools.host, args.running.timeout));
    let server = match &operated {
        Some(api) => {
            let sessions = Arc::new(McpSessions::new(api.clone()));
            Server::observed(tools.host.clone(), settings, sessions)?
        }
        None => Server::new(tools.host.clone(), settings)?,
    };
    // Start watching before the first client connects, so that no change is missed.
    // A revocation has to reach a server that watches no plugin, too.
    let _watch = match args.watch {
        true => tools.host.watch(show_changes),
        false => tools.host.watch_approvals(show_changes),
    }?;
    let host = tools.host.clone();
    let rules = tools.settings.clone();
    let drain = Drain { time: args.drain, insisted: signals.insisted.clone() };
    let served = drive(signals, runtime()?, async |told| {
        let telling = tokio::spawn(tell_missing(common.clone(), host.clone(), changes, rules));
        let running = Running { server: &server, operated: operated.as_ref(), drain };
        let ended = running.serve(way, told.clone()).await;
        // A client that goes at once leaves nothing unsaid that is known by then.
        if host.progress().is_complete() {
            let _ = telling.await;
        }
        ended.map(|ended| (ended, told.is_cancelled()))
    })?;
    if let Some(api) = &operated {
        api.close_sessions();
    }
    if let Some(operated) = wiring {
        operated.close();
    }
    tools.finish_events();
    let (ended, is_told) = served?;
    if let Some(ended) = ended {
        output::note(&ended.to_string());
    }
    Ok(if is_told { Exit::Interrupted } else { Exit::Ok })
}

fn runtime() -> Result<Runtime, Failure> {
    multi_thread_runtime().map_err(|error| Failure::no_thread("cannot start to serve", &error))
}

fn way(args: &Args) -> Result<Way, Failure> {
    match args.http {
        Some(address) => Ok(Way::Http(Box::new(over_http(args, address)?))),
        None if args.console => {
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            Ok(Way::Lines(Some(Box::new(over_http(args, address)?))))
        }
        None => Ok(Way::Lines(None)),
    }
}

/// Returns who confirms calls. An operator who has no console could not.
fn confirmed_by(answers: Answerer, way: &Way) -> Result<ConfirmedBy, Failure> {
    match (answers, way) {
        (Answerer::Anyone, _) => Ok(ConfirmedBy::ClientOrHost),
        (Answerer::Operator, Way::Lines(None)) => Err(Failure::usage(
            "with `--answers operator` calls wait for the console, and there is none: add \
             `--console`, or serve with `--http`",
        )),
        (Answerer::Operator, _) => Ok(ConfirmedBy::HostOnly),
    }
}

fn over_http(args: &Args, address: SocketAddr) -> Result<OverHttp, Failure> {
    // Report all problems together.
    let entry = Entry::of(args)?;
    let operator = Entry::of_operator(args.operator_token_file.as_deref())?;
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
    let settings = match operator.access() {
        Access::Token(token) => settings.with_operator(token).map_err(Failure::usage)?,
        Access::Unauthenticated => settings,
    };
    let settings = args.host.iter().try_fold(settings, |settings, host| settings.with_host(host));
    let settings = settings.and_then(|settings| {
        args.origin.iter().try_fold(settings, |settings, origin| settings.with_origin(origin))
    });
    let settings = settings.map_err(Failure::usage)?;
    Ok(OverHttp { listener: listen(address)?, settings, entry, operator, missing })
}

/// Returns the advice for a server that remote clients still could not reach: no request can name
/// the wildcard address as its host.
fn missing(address: SocketAddr, hosts: &[String]) -> Option<&'static str> {
    (address.ip().is_unspecified() && hosts.is_empty()).then_some(UNNAMED)
}

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    bind(address).map_err(|error| {
        Failure::usage(format!(
            "cannot listen on {address}: {error}; --http 127.0.0.1:0 takes a free port"
        ))
    })
}

/// Binds an address. `[::]` covers the addresses of IPv4 as well, also where the system limits new
/// sockets to IPv6 (`net.ipv6.bindv6only`): another program could take them otherwise.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip() != Ipv6Addr::UNSPECIFIED {
        return TcpListener::bind(address);
    }
    let socket =
        net::socket_with(AddressFamily::INET6, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_ipv6_v6only(&socket, false)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
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
    let tools = plugin.tools().iter().map(|tool| tool.definition().name().as_str());
    let tools: Vec<&str> = tools.collect();
    elided(&tools.join(", "), MAX_TOOLS)
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
