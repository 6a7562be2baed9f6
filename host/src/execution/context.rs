//! What one call sees of its surroundings, and how it talks back while it runs.

use super::account::{Account, MemoryLimits};
use super::client::{Client, NoClient};
use super::clock::CallClock;
use crate::tool::{CallId, ErrorKind, FileAccess, SideEffects, Usage};
use crate::workspace::{Workspace, WorkspaceFiles};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How much a log message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Every step.
    Trace,
    /// For whoever looks for a defect.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is off.
    Warn,
    /// Something failed.
    Error,
}

impl Severity {
    /// The name used in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// How far a tool has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is done, in any unit; finite.
    pub done: f64,
    /// What there is to do, if known.
    pub total: Option<f64>,
    /// What the tool is doing.
    pub message: Option<String>,
}

/// Where a running tool's messages go. Implementations return at once: a slow listener must not delay a call.
pub trait Sink: Send + Sync {
    /// A log message.
    fn log(&self, severity: Severity, message: &str);
    /// A step of progress.
    fn progress(&self, progress: Progress);
    /// A part of the output, before the call has ended.
    fn emit(&self, chunk: &str);
}

/// A sink that nobody listens to.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Sink for Silent {
    fn log(&self, _: Severity, _: &str) {}
    fn progress(&self, _: Progress) {}
    fn emit(&self, _: &str) {}
}

/// Who calls, as far as the caller said.
#[derive(Debug, Clone)]
pub struct Caller {
    /// This call.
    pub call_id: CallId,
    /// The conversation, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The turn, if there is one.
    pub turn_id: Option<Arc<str>>,
    /// A value that the host does not look at.
    pub context: Value,
    /// A JSON object that the host does not look at.
    pub metadata: Map<String, Value>,
}

/// What a tool left behind besides its output, also when it failed.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What the call used.
    pub usage: Usage,
    /// The files that the host saw change, relative to the workspace, under their real names.
    pub files_modified: Vec<PathBuf>,
    /// How many more there were, which the list has no room for.
    pub files_unlisted: u64,
    /// Why a native tool that knows it did not come to its end: what it returns is the output until then.
    pub stopped: Option<ErrorKind>,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// From the start of its run to its end.
    pub run: Duration,
    /// In queues that are still before it.
    pub queue: Duration,
}

/// What one call sees.
pub struct ToolContext {
    caller: Caller,
    workspace: Arc<Workspace>,
    access: FileAccess,
    cancel: CancellationToken,
    times: Times,
    clock: Arc<CallClock>,
    client: Arc<dyn Client>,
    sink: Arc<dyn Sink>,
    report: Mutex<Report>,
    account: Option<Account>,
}

impl ToolContext {
    pub(crate) fn new(
        caller: Caller,
        workspace: Arc<Workspace>,
        cancel: CancellationToken,
        times: Times,
        sink: Arc<dyn Sink>,
    ) -> Self {
        let (clock, client) = (CallClock::new(times.run), Arc::new(NoClient));
        let access = FileAccess::None;
        Self { caller, workspace, access, cancel, times, clock, client, sink, report: Mutex::default(), account: None }
    }

    /// Says of which class the tool is, which decides about its files. Without a class there are none.
    pub(crate) fn set_class(&mut self, class: SideEffects) {
        self.access = class.files();
    }

    /// Says in which account the call's memory counts.
    pub(crate) fn set_account(&mut self, account: Account) {
        self.account = Some(account);
    }

    /// The account that the call's memory counts in.
    pub(crate) fn account(&self) -> Account {
        let unlimited = || Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
        self.account.clone().unwrap_or_else(unlimited)
    }

    /// Names somebody who can be asked while the call runs.
    pub(crate) fn set_client(&mut self, client: Arc<dyn Client>) {
        self.client = client;
    }

    /// Takes a part of the call's time away that is gone already: what checking its input took.
    pub(crate) fn set_spent(&mut self, spent: Duration) {
        self.clock = CallClock::new(self.times.run.saturating_sub(spent));
    }

    /// Who calls.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The directory that the call is about.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Its files, in reach of this call: a tool of class `write` or `execute` reads and changes them, one of class `read` reads them, and one of class
    /// `none` or `network` is refused each of them.
    ///
    /// A native tool runs in the process of the host and with its rights. What it opens in another way, through `std::fs` or [`workspace`](Self::workspace),
    /// is held neither to its class nor to the workspace: that is the risk of the program that registers it.
    #[must_use]
    pub fn files(&self) -> WorkspaceFiles<'_> {
        self.workspace.files_for(self.access)
    }

    /// Whether the caller wants the call to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Completes when the caller wants the call to stop.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// The token behind [`is_cancelled`](Self::is_cancelled).
    #[must_use]
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// How much time the call was given in all.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        self.times.run
    }

    pub(crate) fn times(&self) -> Times {
        self.times
    }

    /// When the call will be stopped. The clock starts when this is first asked: what a call waits for before that is not its own time. It stands still while
    /// the call waits for an answer of its client, which puts this moment off.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.clock.deadline().into_std()
    }

    /// How long the call's clock has run: longer than its time limit, where the call has not ended in time.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        let spent = self.times.run.saturating_sub(self.clock.budget());
        if self.clock.has_started() { spent + self.clock.ran() } else { Duration::ZERO }
    }

    /// How much time is left.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.clock.left()
    }

    pub(crate) fn clock(&self) -> &Arc<CallClock> {
        &self.clock
    }

    /// Whoever made the call, as far as they can be asked something.
    #[must_use]
    pub fn client(&self) -> &Arc<dyn Client> {
        &self.client
    }

    /// Logs a message under this call's id: as an event, for whoever listens.
    pub fn log(&self, severity: Severity, message: &str) {
        self.sink.log(severity, message);
    }

    /// Where messages go.
    #[must_use]
    pub fn sink(&self) -> &Arc<dyn Sink> {
        &self.sink
    }

    /// Notes what the call used and changed; also for a call that fails.
    pub fn set_report(&self, report: Report) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    pub(crate) fn take_report(&self) -> Report {
        std::mem::take(&mut *self.report.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
