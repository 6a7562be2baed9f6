//! Runs a native tool in a task of its own, so that it can clean up after its caller is gone. A
//! cancelled tool has a grace period to stop.

use super::run::{Stopped, caught};
use super::threads::{Away, Place, Threads, Timers};
use crate::execution::{Tool, ToolContext, ToolOutput, ValidInput};
use crate::registry::Registered;
use crate::tool::{ErrorKind, ExecutionKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The grace period in which a cancelled or overdue native tool may end before it is abandoned.
const GRACE: Duration = Duration::from_secs(30);

type Ended = Result<ToolOutput, ErrorKind>;

pub(super) async fn run(
    registered: &Registered,
    tool: Box<dyn Tool>,
    input: ValidInput,
    context: Arc<ToolContext>,
    threads: Option<&Threads>,
) -> Result<ToolOutput, Stopped> {
    let place = match threads {
        Some(threads) => {
            Some(threads.admit(registered, context.cancel(), context.times().queue).await?)
        }
        None => None,
    };
    // The first use of the deadline starts the clock.
    let _ = context.deadline();
    let mut task = Task::start(tool.into(), input, context.clone(), place)?;
    let stop = tokio::select! {
        biased;
        ended = task.ended() => return judged(ended, &context, &*task.tool),
        () = context.cancelled() => ErrorKind::Cancelled,
        () = context.clock().run_out() => timeout(&context, &*task.tool),
    };
    match task.stop().await {
        Left::Ended(ended) => Err(Stopped { kind: stop, partial: ended.ok().map(Box::new) }),
        Left::Abandoned => Err(stop.into()),
        Left::Stuck => Err(given_up(stop, context.time_limit()).into()),
    }
}

/// Turns the timeout of a thread that hangs in a system call into the more specific error.
fn given_up(stop: ErrorKind, limit: Duration) -> ErrorKind {
    if matches!(stop, ErrorKind::Timeout { .. }) { ErrorKind::Unanswered { limit } } else { stop }
}

/// Judges the end of a tool. A cancellation takes precedence over the tool's result. A failure
/// after the deadline, possible if the tool blocked its thread, is a timeout.
fn judged(ended: Ended, context: &ToolContext, tool: &dyn Tool) -> Result<ToolOutput, Stopped> {
    if context.is_cancelled() {
        return Err(Stopped { kind: ErrorKind::Cancelled, partial: ended.ok().map(Box::new) });
    }
    let is_overdue = context.remaining().is_zero();
    ended.map_err(|kind| if is_overdue { timeout(context, tool) } else { kind }.into())
}

fn timeout(context: &ToolContext, tool: &dyn Tool) -> ErrorKind {
    ErrorKind::Timeout {
        limit: context.time_limit(),
        class: tool.definition().side_effects(),
        input: None,
    }
}

/// The outcome of stopping a tool.
enum Left {
    Ended(Ended),
    /// The tool does not stop.
    Abandoned,
    /// The tool's thread hangs.
    Stuck,
}

/// A running tool. On drop it is cancelled and continues on its own until it ends.
struct Task {
    tool: Arc<dyn Tool>,
    cancel: CancellationToken,
    runs: Option<Runs>,
}

/// The place where a tool runs.
enum Runs {
    /// In a task of the caller's runtime.
    Task(JoinHandle<Ended>),
    /// On the host's own threads.
    Away(Away<ToolOutput>),
}

impl Runs {
    async fn ended(&mut self) -> Ended {
        match self {
            Self::Task(handle) => flat(handle.await),
            Self::Away(away) => away.ended().await,
        }
    }
}

impl Task {
    fn start(
        tool: Arc<dyn Tool>,
        input: ValidInput,
        context: Arc<ToolContext>,
        place: Option<Place>,
    ) -> Result<Self, ErrorKind> {
        let own = tool.clone();
        let cancel = context.cancel().clone();
        let work = async move { caught(async { own.execute(input, &context).await }).await };
        let runs = match place {
            None => Runs::Task(tokio::spawn(work.in_current_span())),
            Some(place) => Runs::Away(place.start(Timers::Callers, cancel.clone(), work)?),
        };
        Ok(Self { tool, cancel, runs: Some(runs) })
    }

    async fn ended(&mut self) -> Ended {
        let ended = match &mut self.runs {
            Some(runs) => runs.ended().await,
            None => std::future::pending().await,
        };
        self.runs = None;
        ended
    }

    /// Cancels the tool and waits for its output.
    async fn stop(&mut self) -> Left {
        tell_to_stop(&self.cancel, &*self.tool);
        let left = async {
            match &mut self.runs {
                Some(Runs::Away(away)) => {
                    away.ended_or_stuck().await.map_or(Left::Stuck, Left::Ended)
                }
                Some(runs) => Left::Ended(runs.ended().await),
                None => std::future::pending().await,
            }
        };
        let left = tokio::time::timeout(GRACE, left).await.unwrap_or(Left::Abandoned);
        if matches!(left, Left::Abandoned) {
            abandoned(&*self.tool);
        }
        // The tool is detached, so that its clean-up may still finish.
        self.runs = None;
        left
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let Some(runs) = self.runs.take() else { return };
        tell_to_stop(&self.cancel, &*self.tool);
        let Runs::Task(handle) = runs else { return };
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

fn flat(joined: Result<Ended, JoinError>) -> Ended {
    joined.unwrap_or_else(|_| {
        Err(ErrorKind::execution(ExecutionKind::Internal, "the tool was lost with its runtime"))
    })
}
