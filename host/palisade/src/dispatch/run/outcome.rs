//! The uniform result of a run, and the log line of its error.

use crate::events::CallSink;
use crate::execution::{Outcome, ToolOutput};
use crate::registry::Registered;
use crate::tool::result::joined;
use crate::tool::text::{cut, visible};
use crate::tool::{CallId, Content, ErrorKind, ExecutionKind, ToolResult};

/// The longest failure message of a tool, in bytes; its blocks have the full text.
const MAX_MESSAGE: usize = 16 << 10;

/// A tool that was stopped, with its partial output.
pub(super) struct Stopped {
    pub(super) kind: Box<ErrorKind>,
    pub(super) partial: Option<Box<ToolOutput>>,
}

impl From<ErrorKind> for Stopped {
    fn from(kind: ErrorKind) -> Self {
        Self { kind: Box::new(kind), partial: None }
    }
}

/// Builds the result of a run.
pub(super) fn build_result(
    id: CallId,
    name: &str,
    ended: Result<ToolOutput, Stopped>,
    sink: &CallSink,
) -> ToolResult {
    let (kind, output) = match ended {
        Ok(output) => (reported_failure(&output), output),
        Err(Stopped { kind, partial: Some(output) }) => (Some(*kind), *output),
        Err(Stopped { kind, partial: None }) => {
            let content = sink.emitted().map(Content::Text).into_iter().collect();
            (Some(*kind), ToolOutput { content, ..ToolOutput::default() })
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
fn reported_failure(output: &ToolOutput) -> Option<ErrorKind> {
    let is_failure = output.outcome == Outcome::Failure;
    is_failure.then(|| {
        ErrorKind::execution(ExecutionKind::Unsuccessful, failure_message(&output.content))
    })
}

fn failure_message(content: &[Content]) -> String {
    match visible(cut(&joined(content), MAX_MESSAGE)) {
        text if text.trim().is_empty() => {
            "the tool reports a failure without saying why".to_owned()
        }
        text => text,
    }
}

/// Sets the plugin or the server of a result, and the digest of a plugin.
pub(in crate::dispatch) fn sign(mut result: ToolResult, tool: Option<&Registered>) -> ToolResult {
    if let Some(origin) = tool.map(Registered::origin) {
        result.plugin = origin.plugin().map(str::to_owned);
        result.digest = origin.digest();
    }
    result
}

/// The log target of plugin crashes, so that a program that displays them can filter these lines
/// out.
const CRASHES: &str = "palisade::crash";

/// Logs the error chain of a failed call. Errors that the caller does not see in full are logged as
/// errors, the others as debug messages.
pub(in crate::dispatch) fn log_error(result: &ToolResult) {
    let Some(error) = result.error() else { return };
    let chain = std::iter::successors(error.cause_for_log(), |source| source.source());
    let chain: String = chain.map(|source| format!(": {source}")).collect();
    if error.is_user_visible() {
        tracing::debug!(class = %error.class(), "{error}{chain}");
    } else if matches!(error.kind(), ErrorKind::Execution { kind: ExecutionKind::Trap, .. }) {
        let message = error.to_string();
        let more = chain.trim_start_matches(": ");
        // The crash report usually begins with the same words.
        let report = if more.starts_with(&message) { more.to_owned() } else { message + &chain };
        let id = result.call_id();
        let tool = result.tool();
        let class = error.class();
        tracing::error!(target: CRASHES, %id, tool, %class, "{report}");
    } else {
        tracing::error!(id = %result.call_id(), tool = result.tool(), class = %error.class(), "{error}{chain}");
    }
}
