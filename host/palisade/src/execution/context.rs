//! The context of one call: its environment, and the channels through which it reports while it
//! runs.

use super::account::{Account, MemoryLimits};
use super::client::{Client, NoClient};
use super::clock::CallClock;
use super::nested::{Nesting, ToolCaller};
use super::owner::OwnerShares;
use super::report::Report;
use super::share::{Pool, Share};
use crate::tool::{CallId, Digest, FileAccess, SideEffects};
use crate::workspace::{Workspace, WorkspaceFiles};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The severity of a log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Single steps.
    Trace,
    /// Details for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// A problem that does not fail the call.
    Warn,
    /// A failure.
    Error,
}

impl Severity {
    /// Returns the name used in events.
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

/// The progress of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The amount done, in any unit; finite.
    pub done: f64,
    /// The total amount, if known.
    pub total: Option<f64>,
    /// The current step.
    pub message: Option<String>,
}

/// The receiver of a running tool's messages. Implementations must return at once, so that a slow
/// subscriber does not delay a call.
pub trait Sink: Send + Sync {
    /// Receives a log message.
    fn log(&self, severity: Severity, message: &str);
    /// Receives a progress update.
    fn progress(&self, progress: Progress);
    /// Receives a part of the output before the call has ended.
    fn emit(&self, chunk: &str);
}

/// A sink that discards all messages.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Sink for Silent {
    fn log(&self, _: Severity, _: &str) {}
    fn progress(&self, _: Progress) {}
    fn emit(&self, _: &str) {}
}

/// The identity of the caller, as far as the caller gave it.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The call's id.
    pub call_id: CallId,
    /// The id of the conversation, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The id of the turn, if there is one.
    pub turn_id: Option<Arc<str>>,
    /// An opaque value for the tool; the host does not read it.
    pub context: Value,
    /// An opaque JSON object for the tool; the host does not read it.
    pub metadata: Map<String, Value>,
}

/// The time limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The limit from the start of the run to its end.
    pub run: Duration,
    /// The limit on waiting in the remaining queues.
    pub queue: Duration,
}

/// The context of one call.
pub struct ToolContext {
    caller: Caller,
    workspace: Arc<Workspace>,
    access: FileAccess,
    cancel: CancellationToken,
    times: Times,
    clock: Arc<CallClock>,
    client: Arc<dyn Client>,
    tools: Option<Arc<dyn ToolCaller>>,
    nesting: Option<Nesting>,
    sink: Arc<dyn Sink>,
    report: Mutex<Report>,
    account: Option<Account>,
    shares: Option<Arc<OwnerShares>>,
}

/// Leaves out the caller's context and metadata, which may hold secrets.
impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.caller.call_id)
            .field("workspace", &self.workspace)
            .field("access", &self.access)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

impl ToolContext {
    pub(crate) fn new(
        caller: Caller,
        workspace: Arc<Workspace>,
        cancel: CancellationToken,
        times: Times,
        sink: Arc<dyn Sink>,
    ) -> Self {
        let clock = CallClock::new(times.run);
        let client = Arc::new(NoClient);
        let access = FileAccess::None;
        Self {
            caller,
            workspace,
            access,
            cancel,
            times,
            clock,
            client,
            tools: None,
            nesting: None,
            sink,
            report: Mutex::default(),
            account: None,
            shares: None,
        }
    }

    /// Sets the tool's class, which determines its access to files. Without a class there is none.
    pub(crate) fn set_class(&mut self, class: SideEffects) {
        self.access = class.files();
    }

    /// Sets the memory account of the call.
    pub(crate) fn set_account(&mut self, account: Account) {
        self.account = Some(account);
    }

    /// Returns the memory account of the call.
    pub(crate) fn account(&self) -> Account {
        let unlimited = || Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
        self.account.clone().unwrap_or_else(unlimited)
    }

    /// Sets the shares that the call is charged to, if its session has shares of its own.
    pub(crate) fn set_shares(&mut self, shares: Option<Arc<OwnerShares>>) {
        self.shares = shares;
    }

    /// Returns the shares that the call is charged to. `None`: those of its plugin or native tool.
    pub(crate) fn shares(&self) -> Option<&OwnerShares> {
        self.shares.as_deref()
    }

    /// Returns the share that the owner of this call has of a pool, such as one that a tool keeps
    /// for all of its calls. Calls that no session owns share one.
    #[doc(hidden)]
    #[must_use]
    pub fn share_of(&self, pool: &Pool) -> Arc<Share> {
        match &self.shares {
            Some(shares) => pool.share_of(shares.sandboxes.owner()),
            None => pool.share(Digest::of(b"calls that belong to no session")),
        }
    }

    /// Sets the client that the tool can send requests to.
    pub(crate) fn set_client(&mut self, client: Arc<dyn Client>) {
        self.client = client;
    }

    /// Sets the way for the tool to call others.
    pub(crate) fn set_tools(&mut self, tools: Arc<dyn ToolCaller>) {
        self.tools = Some(tools);
    }

    /// Returns the way for the tool to call others, if it may.
    pub(crate) fn tools(&self) -> Option<&Arc<dyn ToolCaller>> {
        self.tools.as_ref()
    }

    /// Sets what the call shares with the call that makes it.
    pub(crate) fn set_nesting(&mut self, nesting: Nesting) {
        self.nesting = Some(nesting);
    }

    /// Returns what the call shares with the call that makes it, if another call does.
    pub(crate) fn nesting(&self) -> Option<&Nesting> {
        self.nesting.as_ref()
    }

    /// Deducts time that the call has already used for checking its input.
    pub(crate) fn set_spent(&mut self, spent: Duration) {
        self.clock = CallClock::new(self.times.run.saturating_sub(spent));
    }

    /// Bounds the call by the time of the call that makes it.
    pub(crate) fn set_outer_clock(&mut self, outer: Arc<CallClock>) {
        self.clock = CallClock::within(self.clock.budget(), outer);
    }

    /// Returns the identity of the caller.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the workspace of the call.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Returns the workspace's files with the access of the tool's class: `write` and `execute`
    /// read and change files, `read` reads them, and `none` and `network` are refused every file.
    ///
    /// A native tool runs in the host's process with its rights. Files that it opens by other
    /// means, through `std::fs` or [`workspace`](Self::workspace), are limited neither by its class
    /// nor by the workspace; the embedder that registers the tool bears that risk.
    #[must_use]
    pub fn files(&self) -> WorkspaceFiles<'_> {
        self.workspace.files_for(self.access)
    }

    /// Returns true if the call is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Completes when the call is cancelled.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Returns the token behind [`is_cancelled`](Self::is_cancelled).
    #[must_use]
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the total time limit of the call.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        self.times.run
    }

    pub(crate) fn times(&self) -> Times {
        self.times
    }

    /// Returns the call's deadline. The first use starts the clock, so that earlier waits do not
    /// count. The clock is paused while the call waits for a response of its client, which moves
    /// the deadline.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.clock.deadline().into_std()
    }

    /// Returns the time that the call's clock has run, which exceeds the limit if the call is late.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        let spent = self.times.run.saturating_sub(self.clock.budget());
        if self.clock.has_started() { spent + self.clock.ran() } else { Duration::ZERO }
    }

    /// Returns the time left.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.clock.left()
    }

    pub(crate) fn clock(&self) -> &Arc<CallClock> {
        &self.clock
    }

    /// Returns the client that made the call, for requests to it.
    #[must_use]
    pub fn client(&self) -> &Arc<dyn Client> {
        &self.client
    }

    /// Logs a message as an event under this call's id.
    pub fn log(&self, severity: Severity, message: &str) {
        self.sink.log(severity, message);
    }

    /// Returns the receiver of the call's messages.
    #[must_use]
    pub fn sink(&self) -> &Arc<dyn Sink> {
        &self.sink
    }

    /// Sets the report of resources and changed files, also for a call that fails.
    pub fn set_report(&self, report: Report) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    pub(crate) fn take_report(&self) -> Report {
        std::mem::take(&mut *self.report.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
