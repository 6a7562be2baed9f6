//! Runs an approved call on a fresh instance and builds the uniform result.

use super::approve::Approval;
use super::late::{Hiding, Late};
use super::native;
use super::threads::{Threads, Timers, overdue};
use crate::events::CallSink;
use crate::execution::{self, Outcome, Tool, ToolContext, ToolOutput, ValidInput};
use crate::registry::{Origin, Registered};
use crate::tool::result::joined;
use crate::tool::text::{cut, visible};
use crate::tool::{CallId, Content, ErrorKind, ExecutionKind, ToolResult};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The longest failure message of a tool, in bytes; its blocks have the full text.
const MAX_MESSAGE: usize = 16 << 10;

/// The metadata key for the number of changed files beyond the list. A plugin's own value is
/// discarded.
const UNLISTED: &str = "files_modified_unlisted";

/// A tool that was stopped, with its partial output.
pub(super) struct Stopped {
    pub(super) kind: ErrorKind,
    pub(super) partial: Option<Box<ToolOutput>>,
}

impl From<ErrorKind> for Stopped {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, partial: None }
    }
}

/// Runs an approved call, in place or on `threads`.
pub(super) async fn run(
    approval: Approval,
    context: Arc<ToolContext>,
    threads: Option<&Threads>,
    late: &Late,
    sink: &CallSink,
    id: CallId,
) -> ToolResult {
    let (tool, input) = approval.into_parts();
    let mut instance = tool.instantiate();
    // A plugin without access to files cannot hang in a system call, so it is spared the hand-over
    // to another thread.
    let sees_files = tool.definition().side_effects().sees_files();
    let threads = threads.filter(|_| sees_files || *tool.origin() == Origin::Native);
    if sees_files && threads.is_some() {
        let late = late.clone();
        let workspace = context.workspace().clone();
        instance = Box::new(Hiding { late, workspace, tool: instance });
    }
    let ended = match (tool.origin(), threads) {
        // The sandbox enforces its own deadline for all of its work.
        (Origin::Plugin { .. }, None) => {
            instance.execute(input, &context).await.map_err(Stopped::from)
        }
        (Origin::Plugin { .. }, Some(threads)) => {
            Box::pin(away(threads, &tool, instance, input, context.clone()))
                .await
                .map_err(Stopped::from)
        }
        (Origin::Native, threads) => {
            Box::pin(native::run(&tool, instance, input, context.clone(), threads)).await
        }
    };
    let mut report = context.take_report();
    let ended = match (ended, report.stopped.take()) {
        (Ok(output), Some(kind)) => Err(Stopped { kind, partial: Some(Box::new(output)) }),
        (ended, _) => ended,
    };
    let mut result = made(id, tool.definition().name().as_str(), ended, sink);
    result.duration = context.elapsed();
    result.usage = report.usage;
    // The host's observation takes precedence over a plugin's claim. A native tool's report is the
    // only source.
    if matches!(tool.origin(), Origin::Plugin { .. }) {
        result.files_modified = report.files_modified;
        result.metadata.remove(UNLISTED);
        if report.files_unlisted > 0 {
            result.metadata.insert(UNLISTED.to_owned(), report.files_unlisted.into());
        }
    }
    result
}

/// Runs the call on another thread, which is abandoned if it does not return in time.
async fn away(
    threads: &Threads,
    tool: &Registered,
    instance: Box<dyn Tool>,
    input: ValidInput,
    context: Arc<ToolContext>,
) -> Result<ToolOutput, ErrorKind> {
    let place = threads.admit(tool, context.cancel(), context.times().queue).await?;
    let own = context.clone();
    let work = async move { instance.execute(input, &own).await };
    place.start(Timers::Own, context.cancel().clone(), work)?.or(overdue(&context)).await
}

fn made(id: CallId, name: &str, ended: Result<ToolOutput, Stopped>, sink: &CallSink) -> ToolResult {
    let (kind, output) = match ended {
        Ok(output) => (failed(&output), output),
        Err(Stopped { kind, partial: Some(output) }) => (Some(kind), *output),
        Err(Stopped { kind, partial: None }) => {
            let content = sink.emitted().map(Content::Text).into_iter().collect();
            (Some(kind), ToolOutput { content, ..ToolOutput::default() })
        }
    };
    let mut result = match kind {
        None => ToolResult::success_with(id, name, output.content),
        Some(kind) => ToolResult::failure_with(id, name, kind, output.content),
    };
    result.metadata = output.metadata;
    result.files_modified = output.files_modified;
    result.command_executed = output.command_executed;
    result
}

/// Returns the failure that a tool reports after running to completion.
fn failed(output: &ToolOutput) -> Option<ErrorKind> {
    let failed = output.outcome == Outcome::Failure;
    failed.then(|| ErrorKind::execution(ExecutionKind::Unsuccessful, unsuccessful(&output.content)))
}

fn unsuccessful(content: &[Content]) -> String {
    match visible(cut(&joined(content), MAX_MESSAGE)) {
        text if text.trim().is_empty() => {
            "the tool reports a failure without saying why".to_owned()
        }
        text => text,
    }
}

/// Sets the plugin and digest of a result.
pub(super) fn signed(mut result: ToolResult, tool: Option<&Registered>) -> ToolResult {
    if let Some(Origin::Plugin { name, digest, .. }) = tool.map(Registered::origin) {
        result.plugin = Some(String::from(&**name));
        result.digest = Some(*digest);
    }
    result
}

/// Runs a future and turns its panic into an error, so that a panic in a tool, a confirmer or a
/// dependency ends only its call.
pub(super) async fn caught<T>(
    work: impl Future<Output = Result<T, ErrorKind>>,
) -> Result<T, ErrorKind> {
    execution::caught(work).await.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Like [`caught`], for synchronous work.
pub(super) fn caught_here<T>(work: impl FnOnce() -> Result<T, ErrorKind>) -> Result<T, ErrorKind> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        // This work has no call whose result would be logged.
        tracing::error!("{}", words(&*panic));
        Err(panicked(&*panic))
    })
}

/// Returns the error of a panic. Its text is written for developers and may contain anything, so it
/// goes only to the log.
fn panicked(panic: &(dyn std::any::Any + Send)) -> ErrorKind {
    ErrorKind::internal(words(panic))
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the call panicked: {}", text.unwrap_or("no message"))
}

/// The log target of plugin crashes, so that a program that displays them can filter these lines
/// out.
pub(crate) const CRASHES: &str = "palisade::crash";

/// Logs the error chain of a failed call. Errors that the caller does not see in full are logged as
/// errors, the others as debug messages.
pub(super) fn log(result: &ToolResult) {
    let Some(error) = result.error() else { return };
    let chain = std::iter::successors(error.source(), |source| source.source());
    let chain: String = chain.map(|source| format!(": {source}")).collect();
    if error.is_user_visible() {
        tracing::debug!(class = %error.class(), "{error}{chain}");
    } else if matches!(error.kind(), ErrorKind::Execution { kind: ExecutionKind::Trap, .. }) {
        let said = error.to_string();
        let more = chain.trim_start_matches(": ");
        // The crash report usually begins with the same words.
        let account = if more.starts_with(&said) { more.to_owned() } else { said + &chain };
        let id = result.call_id();
        let tool = result.tool();
        let class = error.class();
        tracing::error!(target: CRASHES, %id, tool, %class, "{account}");
    } else {
        tracing::error!(id = %result.call_id(), tool = result.tool(), class = %error.class(), "{error}{chain}");
    }
}
