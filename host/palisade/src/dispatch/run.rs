//! Runs an approved call on a fresh instance and builds the uniform result.

mod guarded_tool;
mod hiding_tool;
mod native;
pub(super) mod outcome;

use super::approve::Approval;
use super::call_threads::{CallThreads, Timers, overdue};
use super::pipeline::{Pipeline, queue_of};
use crate::execution::{Tool, ToolContext, ToolOutput, ValidInput};
use crate::registry::{Origin, Registered};
use crate::tool::{CallId, ErrorKind, ToolResult, UNLISTED};
use guarded_tool::guarded;
use hiding_tool::HidingTool;
use outcome::{Stopped, build_result};
use std::sync::Arc;

/// Runs an approved call, in place or on the host's own threads.
pub(super) async fn run(
    pipeline: &Pipeline<'_>,
    approval: Approval,
    context: Arc<ToolContext>,
    id: CallId,
) -> ToolResult {
    let (tool, input) = approval.into_parts();
    let mut instance = tool.instantiate();
    // A plugin without access to files cannot hang in a system call, so it is spared the hand-over
    // to another thread.
    let sees_files = tool.definition().side_effects().sees_files();
    let is_plugin = matches!(tool.origin(), Origin::Plugin { .. });
    let threads = pipeline.dispatcher.threads.as_deref();
    let threads = threads.filter(|_| sees_files || !is_plugin);
    if sees_files && threads.is_some() {
        let late_rules = pipeline.dispatcher.late_rules.clone();
        let workspace = pipeline.session.workspace().clone();
        instance = Box::new(HidingTool { late_rules, workspace, tool: instance });
    }
    let ended = match (tool.origin(), threads) {
        // The sandbox enforces its own deadline for all of its work.
        (Origin::Plugin { .. }, None) => {
            instance.execute(input, &context).await.map_err(Stopped::from)
        }
        (Origin::Plugin { .. }, Some(threads)) => {
            let instance = guarded(pipeline, instance);
            Box::pin(run_on_thread(threads, &tool, instance, input, context.clone()))
                .await
                .map_err(Stopped::from)
        }
        (Origin::Native | Origin::Server(_), threads) => {
            let instance = guarded(pipeline, instance);
            Box::pin(native::run(&tool, instance, input, context.clone(), threads)).await
        }
    };
    let mut report = context.take_report();
    if let Some(tools) = context.tools() {
        report.add(tools.report());
    }
    let ended = match (ended, report.stopped.take()) {
        (Ok(output), Some(kind)) => {
            Err(Stopped { kind: Box::new(kind), partial: Some(Box::new(output)) })
        }
        (ended, _) => ended,
    };
    let mut result = build_result(id, tool.definition().name().as_str(), ended, pipeline.sink);
    result.duration = context.elapsed();
    result.usage = report.usage;
    // The host's observation takes precedence over a plugin's claim. A native tool's report is the
    // only source.
    if is_plugin {
        result.files_modified = report.files_modified;
        result.metadata.remove(UNLISTED);
        if report.files_unlisted > 0 {
            result.metadata.insert(UNLISTED.to_owned(), report.files_unlisted.into());
        }
    }
    result
}

/// Runs the call on another thread, which is abandoned if it does not return in time.
async fn run_on_thread(
    threads: &CallThreads,
    tool: &Registered,
    instance: Box<dyn Tool>,
    input: ValidInput,
    context: Arc<ToolContext>,
) -> Result<ToolOutput, ErrorKind> {
    let permit =
        threads.admit(queue_of(tool, &context), context.cancel(), context.times().queue).await?;
    let own = context.clone();
    let work = async move { instance.execute(input, &own).await };
    permit.start(Timers::Own, context.cancel().clone(), work)?.or(overdue(&context)).await
}
