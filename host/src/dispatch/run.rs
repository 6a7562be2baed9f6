//! The run itself: a fresh instance, its deadline, and whatever comes out of it made into the uniform result.

use crate::execution::{Outcome, Tool, ToolContext, ToolOutput, ValidInput};
use crate::registry::{Origin, Registered};
use crate::tool::result::joined;
use crate::tool::text::{cut, visible};
use crate::tool::{CallId, Content, ErrorKind, ExecutionKind, ToolResult};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// How long a cancelled or overdue native tool gets to end before it is abandoned.
const NATIVE_GRACE: Duration = Duration::from_secs(30);

/// The longest message of a tool that reports a failure, in bytes; its blocks hold all of it.
const MAX_MESSAGE: usize = 16 << 10;

/// Runs one call of a tool that may run.
pub(super) async fn run(tool: &Registered, input: ValidInput, context: &ToolContext, id: CallId) -> ToolResult {
    let outcome = execute(tool, input, context).await;
    let name = tool.definition().name().as_str();
    let mut result = match outcome {
        Ok(output) => finished(id, name, output),
        Err(kind) => ToolResult::failure(id, name, kind),
    };
    let report = context.take_report();
    result.duration = context.elapsed();
    result.usage = report.usage;
    // What the host saw stands above what the tool says; a native tool has nobody else to say it.
    if matches!(tool.origin(), Origin::Plugin { .. }) {
        result.files_modified = report.files_modified;
    }
    log(&result);
    result
}

async fn execute(tool: &Registered, input: ValidInput, context: &ToolContext) -> Result<ToolOutput, ErrorKind> {
    let instance = tool.instantiate();
    match tool.origin() {
        // The sandbox keeps its own deadline, over everything that it does.
        Origin::Plugin { .. } => instance.execute(input, context).await,
        Origin::Native => {
            let _ = context.deadline();
            native(&*instance, input, context).await
        }
    }
}

async fn native(tool: &dyn Tool, input: ValidInput, context: &ToolContext) -> Result<ToolOutput, ErrorKind> {
    let mut work = pin!(tool.execute(input, context));
    let stop = tokio::select! {
        biased;
        // Whatever a tool still returns once its caller has given up, the call was cancelled.
        done = &mut work => return if context.is_cancelled() { Err(ErrorKind::Cancelled) } else { done },
        () = context.cancelled() => ErrorKind::Cancelled,
        () = async { tokio::time::sleep_until(context.deadline().into()).await } => {
            ErrorKind::Timeout { limit: context.time_limit(), class: tool.definition().side_effects() }
        }
    };
    context.cancel().cancel();
    tool.cancel();
    if tokio::time::timeout(NATIVE_GRACE, work).await.is_err() {
        tracing::warn!(call_id = %context.caller().call_id, tool = tool.name(), "a native tool ignored its cancellation for 30 s and was abandoned");
    }
    Err(stop)
}

fn finished(id: CallId, name: &str, output: ToolOutput) -> ToolResult {
    let mut result = match output.outcome {
        Outcome::Success => ToolResult::success_with(id, name, output.content),
        Outcome::Failure => {
            let kind = ErrorKind::execution(ExecutionKind::Unsuccessful, unsuccessful(&output.content));
            ToolResult::failure_with(id, name, kind, output.content)
        }
    };
    result.metadata = output.metadata;
    result.files_modified = output.files_modified;
    result.command_executed = output.command_executed;
    result
}

fn unsuccessful(content: &[Content]) -> String {
    match joined(content) {
        text if text.trim().is_empty() => "the tool reports a failure without saying why".to_owned(),
        text => visible(cut(&text, MAX_MESSAGE)),
    }
}

/// A panic of a tool, of a confirmer, or of a dependency below them ends the call and nothing else.
pub(super) async fn caught<T>(work: impl Future<Output = Result<T, ErrorKind>>) -> Result<T, ErrorKind> {
    let mut work = pin!(work);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(panic) => Poll::Ready(Err(panicked(&*panic))),
    })
    .await
}

/// The text of a panic goes to the log only: it was written for developers, and may hold anything.
fn panicked(panic: &(dyn std::any::Any + Send)) -> ErrorKind {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!("a call panicked: {}", text.unwrap_or("no message"));
    ErrorKind::execution(ExecutionKind::Internal, "the tool failed inside; the log has the details")
}

fn log(result: &ToolResult) {
    if let Some(error) = result.error() {
        let mut chain = String::new();
        let mut next = error.source();
        while let Some(source) = next {
            chain = format!("{chain}: {source}");
            next = source.source();
        }
        tracing::debug!(call_id = %result.call_id(), tool = result.tool(), class = %error.class(), "{error}{chain}");
    }
}
