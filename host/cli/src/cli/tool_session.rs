//! The shared setup of subcommands that run tools: the host with its terminal and events, a
//! runtime, and signal handling.

use super::args::{Common, Running};
use super::destination::Begin;
use super::exit::Failure;
use super::journal::CallJournal;
use super::progress::{self, Detail, Emitted, Watching};
use super::prompt::{StandingRules, Terminal};
use super::serve::Operated;
use super::signals::Signals;
use super::unused_rules::{self, Told};
use super::{approve, destination, output, setup, wide};
use crate::config::Settings;
use palisade::events::JsonLines;
use palisade::sandbox::limits;
use palisade::workspace::Workspace;
use palisade::{BuildError, Host, HostBuilder};
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// The time that the end of the program waits for the last events.
///
/// Together with the grace of a blocked thread it stays below 2 s.
const LAST_LINES: Duration = Duration::from_secs(1);

/// A host that confirms on the terminal and reports events to the user and to a file.
pub(super) struct Tools {
    pub(super) host: Arc<Host>,
    pub(super) settings: Settings,
    /// The live view of the tools, if there is one.
    pub(super) shown: Option<Arc<Watching>>,
    events: Option<Arc<JsonLines>>,
    journal: Option<CallJournal>,
}

/// The tools that a subcommand runs.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// These tools. No other plugin is compiled.
    Tools(&'a [&'a str]),
    /// All tools, for clients that may call as soon as the first one is loaded. There is no
    /// confirmation on this terminal.
    Served(&'a Served<'a>),
}

impl Wanted<'_> {
    /// Returns the terminal that confirms the calls.
    fn terminal(self) -> Terminal {
        match self {
            Self::Tools(tools) => Terminal::of_calls(tools),
            Self::Served(_) => Terminal::default(),
        }
    }

    /// Adds the confirmer to a host, and hides the files of a server.
    fn wire(self, builder: HostBuilder, terminal: &Arc<Terminal>) -> HostBuilder {
        match self {
            Self::Tools(_) => builder.confirmer(terminal.clone()),
            Self::Served(Served { secrets, operated }) => {
                let hidden = secrets.iter().fold(builder, |host, file| host.deny_read(*file));
                operated.iter().fold(hidden, |host, operated| operated.wire(host))
            }
        }
    }
}

/// The token files and the parts for the operator that a server adds to its host.
pub(super) struct Served<'a> {
    /// The token files of the server, which no tool may read.
    pub(super) secrets: Vec<&'a Path>,
    /// The recorder and the confirmer, if there is a journal.
    pub(super) operated: Option<&'a Operated>,
}

/// The form in which a subcommand prints on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prints {
    /// Text, for a person.
    Text,
    /// JSON, which has the output of the tools.
    Json,
}

impl Tools {
    pub(super) fn open(
        common: &Common,
        args: &Running,
        wanted: Wanted<'_>,
        prints: Prints,
    ) -> Result<Self, Failure> {
        Self::open_hiding(common, args, wanted, prints, None)
    }

    /// Same as [`open`](Self::open), and hides a file of this run from the tools.
    pub(super) fn open_hiding(
        common: &Common,
        args: &Running,
        wanted: Wanted<'_>,
        prints: Prints,
        hidden: Option<&Path>,
    ) -> Result<Self, Failure> {
        let opening = args.timeout.unwrap_or(limits::OPENING).min(limits::OPENING);
        let settings = setup::settings_within(common, opening)?;
        let policy = setup::policy(common, &settings, &args.allow);
        let (events, begin) =
            args.events.as_deref().map(|path| lines(path, &common.workspace)).transpose()?.unzip();
        let mut builder = setup::builder(common, &settings)?.policy(policy);
        let terminal = Arc::new(wanted.terminal());
        builder = wanted.wire(builder, &terminal);
        if let Some(lines) = &events {
            builder = builder.subscriber(lines.clone());
        }
        let journal = match wanted {
            Wanted::Tools(_) => CallJournal::open(&settings.journal)?,
            Wanted::Served(_) => None,
        };
        builder = journal.iter().fold(builder, |host, journal| journal.wire(host));
        builder = args.events.iter().fold(builder, HostBuilder::deny_read);
        builder = hidden.into_iter().fold(builder, HostBuilder::deny_read);
        let shown = progress::watches(common).then(|| Arc::new(watching(common, wanted, prints)));
        if let Some(shown) = &shown {
            builder = builder.subscriber(shown.clone());
        }
        let host = Arc::new(match wanted {
            Wanted::Tools(tools) => builder.build_for_all(tools)?,
            Wanted::Served(_) => builder.build_in_background()?,
        });
        if let Wanted::Tools(tools) = wanted {
            prepare_calls(common, &settings, &host, tools, &terminal)?;
        }
        if let (Some(begin), Some(path)) = (begin, &args.events) {
            begin.now().map_err(|error| unwritable(path, &error))?;
        }
        wide::show(host.workspace());
        match wanted {
            Wanted::Tools(tools) => {
                unused_rules::show(common, &settings, &host, Told::of(tools, &host));
                unused_rules::show_unbound(&settings, &host, Some(tools));
                setup::show_undecided(common, &host, tools);
            }
            // Tools are still loading, so that missing ones cannot be reported yet.
            Wanted::Served(_) => {}
        }
        Ok(Self { host, settings, shown, events, journal })
    }

    /// Runs work as [`drive`] does on a current-thread runtime, and then flushes the events.
    pub(super) fn run<T: Send>(
        &self,
        signals: &Signals,
        work: impl AsyncFnOnce(&Host, CancellationToken) -> T + Send,
    ) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| Failure::no_thread("cannot start the call", &error))?;
        let done =
            drive(signals, runtime, async |interrupted| work(&self.host, interrupted).await)?;
        self.finish_events();
        Ok(done)
    }

    /// Flushes the events and the journal. An error is reported, but does not discard the result.
    pub(super) fn finish_events(&self) {
        if let Some(journal) = &self.journal {
            journal.close();
        }
        if let Some(Err(error)) = self.events.as_ref().map(|lines| lines.finish(LAST_LINES)) {
            output::problem("events:", &error.to_string());
        }
    }
}

/// Runs work on a runtime on a separate thread: the kernel delivers a signal to the first thread,
/// which could not handle it while blocked in the kernel. The token is cancelled by Ctrl-C, by
/// SIGTERM, and when the terminal closes.
pub(super) fn drive<T: Send>(
    signals: &Signals,
    runtime: Runtime,
    work: impl AsyncFnOnce(CancellationToken) -> T + Send,
) -> Result<T, Failure> {
    signals.work_begins(runtime.handle().clone());
    let work = || runtime.block_on(work(signals.told.clone()));
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("palisade-work".to_owned())
            .spawn_scoped(scope, work)?;
        Ok::<_, io::Error>(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let done = done.map_err(|error| Failure::no_thread("cannot start the call", &error))?;
    signals.work_is_done();
    runtime.shutdown_background();
    Ok(done)
}

/// Returns the live view of the tools.
fn watching(common: &Common, wanted: Wanted<'_>, prints: Prints) -> Watching {
    let detail = if common.verbose { Detail::Verbose } else { Detail::Usual };
    let emitted = match prints {
        Prints::Json if io::stdout().is_terminal() => Emitted::Ignored,
        Prints::Json | Prints::Text => Emitted::Shown,
    };
    match wanted {
        Wanted::Tools(_) => Watching::new(detail, emitted),
        Wanted::Served(_) => Watching::served(detail),
    }
}

/// Loads what these tools call, checks the approvals and rules that their calls need, and lets the
/// terminal offer standing rules.
fn prepare_calls(
    common: &Common,
    settings: &Settings,
    host: &Arc<Host>,
    tools: &[&str],
    terminal: &Terminal,
) -> Result<(), Failure> {
    load_callees(host, tools);
    approve::before_calls(common, settings, host, tools)?;
    unused_rules::check(settings, host)?;
    terminal.show_changes(host);
    let rules = StandingRules::of_host(common, settings, host);
    rules.into_iter().for_each(|rules| terminal.offer(rules));
    Ok(())
}

/// Loads the other plugins if one of the tools calls others, which are not known before it runs.
fn load_callees(host: &Host, tools: &[&str]) {
    let registered = tools.iter().filter_map(|tool| host.registry().get(tool).ok());
    if registered.into_iter().any(|tool| tool.definition().calls_tools()) {
        host.rescan();
    }
}

/// Opens the file for events. Nothing is appended until the run begins.
fn lines(path: &Path, workspace: &Path) -> Result<(Arc<JsonLines>, Begin), Failure> {
    let workspace =
        Workspace::open_within(workspace.to_owned(), limits::OPENING).map_err(BuildError::from)?;
    let opened = destination::open(path, &workspace);
    let lines = opened.and_then(|(destination, begin)| Ok((JsonLines::new(destination)?, begin)));
    lines.map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot write the events to `{}`: {error}", path.display()))
}
