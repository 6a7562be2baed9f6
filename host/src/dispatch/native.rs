//! A native tool: in a task of its own, so that it can clean up after its caller has gone; told to stop, and waited for, but not forever.

use super::run::{Stopped, caught};
use crate::execution::{Tool, ToolContext, ToolOutput, ValidInput};
use crate::tool::{ErrorKind, ExecutionKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How long a cancelled or overdue native tool gets to end before it is abandoned.
const GRACE: Duration = Duration::from_secs(30);

type Ended = Result<ToolOutput, ErrorKind>;

pub(super) async fn run(
    tool: Box<dyn Tool>,
    input: ValidInput,
    context: Arc<ToolContext>,
) -> Result<ToolOutput, Stopped> {
    let deadline = context.deadline();
    let mut task = Task::start(tool.into(), input, context.clone());
    let stop = tokio::select! {
        biased;
        // Whatever a tool still returns once its caller has given up, the call was cancelled.
        ended = task.ended() => return if context.is_cancelled() { Err(cancelled(ended)) } else { ended.map_err(Stopped::from) },
        () = context.cancelled() => ErrorKind::Cancelled,
        () = tokio::time::sleep_until(deadline.into()) => {
            ErrorKind::Timeout { limit: context.time_limit(), class: task.tool.definition().side_effects() }
        }
    };
    let partial = task.stop().await.and_then(Result::ok);
    Err(Stopped { kind: stop, partial })
}

fn cancelled(ended: Ended) -> Stopped {
    Stopped { kind: ErrorKind::Cancelled, partial: ended.ok() }
}

/// A running tool. Dropped before its end, it is told to stop and goes on by itself until it has.
struct Task {
    tool: Arc<dyn Tool>,
    cancel: CancellationToken,
    handle: Option<JoinHandle<Ended>>,
}

impl Task {
    fn start(tool: Arc<dyn Tool>, input: ValidInput, context: Arc<ToolContext>) -> Self {
        let (own, cancel) = (tool.clone(), context.cancel().clone());
        let work = async move { caught(async { own.execute(input, &context).await }).await };
        Self { tool, cancel, handle: Some(tokio::spawn(work.in_current_span())) }
    }

    async fn ended(&mut self) -> Ended {
        let ended = match &mut self.handle {
            Some(handle) => flat(handle.await),
            None => std::future::pending().await,
        };
        self.handle = None;
        ended
    }

    /// Tells it to stop and waits for what it still has to say.
    async fn stop(&mut self) -> Option<Ended> {
        tell_to_stop(&self.cancel, &*self.tool);
        let ended = tokio::time::timeout(GRACE, self.ended()).await.ok();
        if ended.is_none() {
            // Left to itself: its clean-up may still come to an end.
            self.handle = None;
            abandoned(&*self.tool);
        }
        ended
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        tell_to_stop(&self.cancel, &*self.tool);
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
    tracing::warn!(tool = tool.name(), "a native tool ignored its cancellation for 30 s and was abandoned");
}

fn flat(joined: Result<Ended, JoinError>) -> Ended {
    joined.unwrap_or_else(|_| Err(ErrorKind::execution(ExecutionKind::Internal, "the tool was lost with its runtime")))
}
