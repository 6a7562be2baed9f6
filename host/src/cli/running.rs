//! What the verbs share that run tools: the host with its terminal and its events, a runtime, and Ctrl-C.

use super::args::{Common, Running};
use super::exit::{Exit, Failure};
use super::live::{Detail, Watching};
use super::prompt::Terminal;
use super::{open, output};
use crate::events::JsonLines;
use crate::host::Host;
use crate::policy::Policy;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long the end of the program waits for events that are still to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// A host that asks on the terminal, and tells a person and a file what happens.
pub(super) struct Tools {
    pub(super) host: Host,
    events: Option<Arc<JsonLines>>,
}

impl Tools {
    pub(super) fn open(common: &Common, args: &Running) -> Result<Self, Failure> {
        let settings = open::settings(common)?;
        let policy = args
            .allow
            .iter()
            .fold(settings.policy(&common.workspace), |policy, class| Policy::allowing(policy, *class));
        let events = args.events.as_deref().map(lines).transpose()?;
        let mut builder = open::builder(common, &settings).policy(policy).confirmer(Arc::new(Terminal::default()));
        if let Some(lines) = &events {
            builder = builder.subscriber(lines.clone());
        }
        if common.verbose || io::stderr().is_terminal() {
            let detail = if common.verbose { Detail::Verbose } else { Detail::Usual };
            builder = builder.subscriber(Arc::new(Watching::new(detail)));
        }
        Ok(Self { host: builder.build()?, events })
    }

    /// Runs work on a runtime of its own. The token is cancelled at Ctrl-C.
    pub(super) fn run<T>(&self, work: impl AsyncFnOnce(&Host, CancellationToken) -> T) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| Failure::new(Exit::Internal, format!("cannot start the call: {error}")))?;
        let interrupted = CancellationToken::new();
        let done: io::Result<T> = runtime.block_on(async {
            survive_file_limits();
            // Installed before the call begins: without it, the signal would end the program and nobody would learn how the call ended.
            let mut interrupts = interrupts()?;
            let token = interrupted.clone();
            tokio::spawn(async move {
                if interrupts.recv().await.is_some() {
                    token.cancel();
                }
            });
            Ok(work(&self.host, interrupted).await)
        });
        runtime.shutdown_background();
        self.finish_events();
        Ok(done?)
    }

    /// Events that could not be written are no reason to lose the result; they are worth a word.
    fn finish_events(&self) {
        if let Some(Err(error)) = self.events.as_ref().map(|lines| lines.finish(LAST_LINES)) {
            output::problem("events:", &error.to_string());
        }
    }
}

fn lines(path: &Path) -> Result<Arc<JsonLines>, Failure> {
    let failure = |error| Failure::usage(format!("cannot write the events to `{}`: {error}", path.display()));
    create(path).and_then(JsonLines::new).map_err(failure)
}

/// Opens a file that may be a pipe. Never waits: a pipe that nobody reads is refused.
#[cfg(unix)]
fn create(path: &Path) -> io::Result<File> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = File::options();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    // From here on the thread that writes may wait; it is its own.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(not(unix))]
fn create(path: &Path) -> io::Result<File> {
    File::create(path)
}

#[cfg(unix)]
fn interrupts() -> io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn interrupts() -> io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

/// Where files may not grow any further (`ulimit -f`), a write is to fail like any other: without a handler the signal would end the program.
#[cfg(unix)]
fn survive_file_limits() {
    use tokio::signal::unix::{SignalKind, signal};
    let number = rustix::process::Signal::XFSZ.as_raw();
    if let Err(error) = signal(SignalKind::from_raw(number)) {
        tracing::warn!("a limit on file sizes will end the program: {error}");
    }
}

#[cfg(not(unix))]
fn survive_file_limits() {}
