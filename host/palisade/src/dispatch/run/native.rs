//! Runs a native tool in a task of its own, so that it can clean up after its caller is gone. A
//! cancelled tool has a grace period to stop.

use super::outcome::Stopped;
use crate::dispatch::call_threads::{CallThreads, PendingJob, Permit, Timers};
use crate::dispatch::panics::catch_panic_of_tool;
use crate::dispatch::pipeline::queue_of;
use crate::execution::account::CallBudget;
use crate::execution::{Tool, ToolContext, ToolOutput, ValidInput};
use crate::registry::Registered;
use crate::sandbox::{Promiser, Terms, conforming};
use crate::tool::{ErrorKind, ExecutionKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The grace period in which a cancelled or overdue native tool may end before it is abandoned.
const GRACE: Duration = Duration::from_secs(30);

type RunOutcome = Result<ToolOutput, ErrorKind>;

pub(super) async fn run(
    registered: &Registered,
    tool: Box<dyn Tool>,
    input: ValidInput,
    context: Arc<ToolContext>,
    threads: Option<&CallThreads>,
) -> Result<ToolOutput, Stopped> {
    let permit = match threads {
        Some(threads) => {
            let queue = queue_of(registered, &context);
            Some(threads.admit(queue, context.cancel(), context.times().queue).await?)
        }
        None => None,
    };
    // The first use of the deadline starts the clock.
    let _ = context.deadline();
    if context.clock().is_late() {
        return Err(timeout(&context, &*tool).into());
    }
    let mut task = Task::start(tool.into(), input, context.clone(), permit)?;
    let stop = tokio::select! {
        biased;
        ended = task.ended() => {
            let output = judge(ended, &context, &*task.tool)?;
            return conform(registered, output, &context).await.map_err(Stopped::from);
        }
        () = context.cancelled() => ErrorKind::Cancelled,
        () = context.clock().run_out() => timeout(&context, &*task.tool),
    };
    match task.stop().await {
        StopOutcome::Ended(ended) => Err(stopped(stop, ended)),
        StopOutcome::Abandoned => Err(stop.into()),
        StopOutcome::Stuck => Err(hang_error(stop, context.time_limit()).into()),
    }
}

/// Turns the timeout of a thread that hangs in a system call into the more specific error.
fn hang_error(stop: ErrorKind, limit: Duration) -> ErrorKind {
    if matches!(stop, ErrorKind::Timeout { .. }) { ErrorKind::Unanswered { limit } } else { stop }
}

/// Judges the end of a tool. A cancellation takes precedence over the tool's result. A failure
/// after the deadline, possible if the tool blocked its thread, is a timeout.
fn judge(ended: RunOutcome, context: &ToolContext, tool: &dyn Tool) -> Result<ToolOutput, Stopped> {
    if context.is_cancelled() {
        return Err(stopped(ErrorKind::Cancelled, ended));
    }
    let is_overdue = context.remaining().is_zero();
    ended.map_err(|kind| if is_overdue { timeout(context, tool) } else { kind }.into())
}

/// Returns the output if it conforms to the schema of its tool, if it has one.
async fn conform(
    registered: &Registered,
    output: ToolOutput,
    context: &ToolContext,
) -> Result<ToolOutput, ErrorKind> {
    let definition = registered.definition();
    if definition.output_schema().is_none() {
        return Ok(output);
    }
    let cancel = context.cancel().clone();
    let budget = CallBudget::new(context.account(), context.deadline(), cancel);
    let terms = Terms {
        budget: &budget,
        turns: context.shares().map_or_else(|| registered.turns(), |shares| &shares.turns),
        time: context.time_limit(),
        class: definition.side_effects(),
        promiser: Promiser::Tool,
    };
    conforming(output, definition, &terms).await
}

fn stopped(kind: ErrorKind, ended: RunOutcome) -> Stopped {
    Stopped { kind: Box::new(kind), partial: ended.ok().map(Box::new) }
}

fn timeout(context: &ToolContext, tool: &dyn Tool) -> ErrorKind {
    ErrorKind::Timeout {
        limit: context.time_limit(),
        class: tool.definition().side_effects(),
        input: None,
    }
}

/// The outcome of stopping a tool.
enum StopOutcome {
    Ended(RunOutcome),
    /// The tool does not stop.
    Abandoned,
    /// The tool's thread hangs.
    Stuck,
}

/// A running tool. On drop it is cancelled and continues on its own until it ends.
struct Task {
    tool: Arc<dyn Tool>,
    cancel: CancellationToken,
    execution: Option<Execution>,
}

/// The way in which a tool runs.
enum Execution {
    /// In a task of the caller's runtime.
    Task(JoinHandle<RunOutcome>),
    /// On the host's own threads.
    Thread(PendingJob<ToolOutput>),
}

impl Execution {
    async fn ended(&mut self) -> RunOutcome {
        match self {
            Self::Task(handle) => flatten(handle.await),
            Self::Thread(job) => job.ended().await,
        }
    }
}

impl Task {
    fn start(
        tool: Arc<dyn Tool>,
        input: ValidInput,
        context: Arc<ToolContext>,
        permit: Option<Permit>,
    ) -> Result<Self, ErrorKind> {
        let own = tool.clone();
        let cancel = context.cancel().clone();
        let work =
            async move { catch_panic_of_tool(async { own.execute(input, &context).await }).await };
        let execution = match permit {
            None => Execution::Task(tokio::spawn(work.in_current_span())),
            Some(permit) => {
                Execution::Thread(permit.start(Timers::Callers, cancel.clone(), work)?)
            }
        };
        Ok(Self { tool, cancel, execution: Some(execution) })
    }

    async fn ended(&mut self) -> RunOutcome {
        let ended = match &mut self.execution {
            Some(execution) => execution.ended().await,
            None => std::future::pending().await,
        };
        self.execution = None;
        ended
    }

    /// Cancels the tool and waits for its output.
    async fn stop(&mut self) -> StopOutcome {
        tell_to_stop(&self.cancel, &*self.tool);
        let outcome = async {
            match &mut self.execution {
                Some(Execution::Thread(job)) => {
                    job.ended_or_stuck().await.map_or(StopOutcome::Stuck, StopOutcome::Ended)
                }
                Some(execution) => StopOutcome::Ended(execution.ended().await),
                None => std::future::pending().await,
            }
        };
        let outcome = tokio::time::timeout(GRACE, outcome).await.unwrap_or(StopOutcome::Abandoned);
        if matches!(outcome, StopOutcome::Abandoned) {
            abandoned(&*self.tool);
        }
        // The tool is detached, so that its clean-up may still finish.
        self.execution = None;
        outcome
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let Some(execution) = self.execution.take() else { return };
        tell_to_stop(&self.cancel, &*self.tool);
        let Execution::Task(handle) = execution else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let tool = self.tool.clone();
            let watch = async move {
                if tokio::time::timeout(GRACE, handle).await.is_err() {
                    abandoned(&*tool);
                }
            };
            runtime.spawn(watch.in_current_span());
        }
    }
}

fn tell_to_stop(cancel: &CancellationToken, tool: &dyn Tool) {
    cancel.cancel();
    if catch_unwind(AssertUnwindSafe(|| tool.cancel())).is_err() {
        tracing::error!(tool = tool.name(), "a native tool panicked when it was told to stop");
    }
}

fn abandoned(tool: &dyn Tool) {
    tracing::warn!(
        tool = tool.name(),
        "a native tool ignored its cancellation for 30 s and was abandoned"
    );
}

fn flatten(joined: Result<RunOutcome, JoinError>) -> RunOutcome {
    joined.unwrap_or_else(|_| {
        Err(ErrorKind::execution(ExecutionKind::Internal, "the tool was lost with its runtime"))
    })
}
