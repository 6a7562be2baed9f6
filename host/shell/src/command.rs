//! One call: starts the command, follows it and returns how it ended.

mod follow;
pub(crate) mod output;

pub(crate) use follow::{Completed, StopReason, Timeouts, input_timeout};

use crate::process::{self, CommandSpec, HostStreams, Streams};
use crate::tool::{CallParts, Setup};
use palisade::ErrorKind;
use palisade::sandbox::limits;
use std::future::Future;
use std::pin::pin;
use tokio::process::ChildStdout;
use tokio::time::timeout;

/// Runs a command until it ends or `stop` completes.
pub(crate) async fn run(
    command: &str,
    setup: &Setup,
    call: CallParts<'_>,
    stop: impl Future<Output = StopReason>,
) -> Result<Completed, ErrorKind> {
    let spec = CommandSpec {
        command: command.to_owned(),
        confinement: setup.options.confinement,
        network: setup.options.network,
        workspace: call.workspace.clone(),
        kernel: setup.kernel,
        helper: setup.options.helper.clone(),
        limits: setup.options.limits,
        streams: Streams::Output,
        variables: Vec::new(),
        readable: Vec::new(),
    };
    let mut stop = pin!(stop);
    let mut starting = pin!(process::start(spec)?);
    let (started, early) = tokio::select! {
        biased;
        started = &mut starting => (Some(started), None),
        // A hanging workspace can block the start. A command that still starts later is killed,
        // because its receiver is gone.
        reason = &mut stop => (timeout(limits::THREAD_GRACE, starting).await.ok(), Some(reason)),
    };
    let Some(started) = started else { return Err(never_started(early)) };
    let mut running =
        started.map_err(|_| ErrorKind::internal("the thread that starts commands ended"))??;
    let stop = async {
        match early {
            Some(reason) => reason,
            None => stop.await,
        }
    };
    let HostStreams::Output(output) = running.take_streams()? else {
        return Err(ErrorKind::internal("a command has the pipes of a service"));
    };
    let stdout = ChildStdout::from_std(output.into())?;
    Ok(follow::follow(running, stdout, stop, call.sink, setup.timeouts).await)
}

fn never_started(reason: Option<StopReason>) -> ErrorKind {
    match reason {
        Some(StopReason::Timeout(limit)) => ErrorKind::Unanswered { limit },
        Some(StopReason::Cancelled) | None => ErrorKind::Cancelled,
    }
}
