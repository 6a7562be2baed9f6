//! `palisade serve`: the tools, for every client that speaks the Model Context Protocol.

use super::args::{Common, Serve as Args};
use super::exit::{Exit, Failure};
use super::running::{Tools, Wanted, drive};
use super::signals::Signals;
use super::{open, output};
use crate::host::Host;
use crate::mcp::{Changes, ServeError, Server, Settings};
use crate::plugins::{Plugin, Rescan};
use crate::tool::text::elided;
use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(super) fn run(common: &Common, args: &Args, signals: &Signals) -> Result<Exit, Failure> {
    let tools = Tools::open(common, &args.running, Wanted::Served)?;
    let mut settings = Settings::default();
    settings.timeout = args.running.timeout;
    if args.watch {
        settings.changes = Changes::Watched;
    }
    let server = Server::new(tools.host.clone(), settings)?;
    // From here on, though clients come later: whatever is put there is found.
    let _watch = args.watch.then(|| tools.host.watch(show_changes)).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Internal, format!("cannot start to serve: {error}")))?;
    if io::stdin().is_terminal() {
        output::note(
            "serving MCP on standard input, one message a line; end it with Ctrl-D. Clients start this by themselves: see `palisade mcp config`",
        );
    }
    let host = tools.host.clone();
    let served = drive(signals, runtime, async |told| {
        tokio::spawn(tell_rejected(host));
        lines(&server, told.clone()).await.map(|()| told.is_cancelled())
    })?;
    tools.finish_events();
    Ok(if served? { Exit::Interrupted } else { Exit::Ok })
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
    let output = protocol_output()?;
    server.serve_lines(io::stdin(), output, stop.child_token()).await
}

/// Standard output without the buffer that breaks at line ends: what is written is whole lines already.
#[cfg(unix)]
fn protocol_output() -> io::Result<impl Write + Send + 'static> {
    use std::os::fd::AsFd as _;
    Ok(std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(not(unix))]
fn protocol_output() -> io::Result<impl Write + Send + 'static> {
    Ok(io::stdout())
}

/// Clients are answered while plugins are still compiled; what was refused is told once that is known.
async fn tell_rejected(host: Arc<Host>) {
    host.loaded().await;
    open::show_rejected(&host.rejected());
}
