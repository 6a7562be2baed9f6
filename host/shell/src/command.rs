//! One call: starts the command, follows it and reports its outcome.

use super::process::{self, Commission};
use super::report;
use super::tool::{CallParts, Setup};
use super::watch::{self, Why};
use palisade::execution::{Report, ToolOutput};
use palisade::sandbox::limits;
use palisade::tool::ErrorKind;
use std::future::Future;
use std::pin::pin;
use tokio::process::ChildStdout;
use tokio::time::timeout;

/// Runs a command until it ends or `stop` completes.
pub(super) async fn run(
    command: &str,
    setup: &Setup,
    call: CallParts<'_>,
    stop: impl Future<Output = Why>,
) -> Result<(ToolOutput, Report), ErrorKind> {
    let commission = Commission {
        command: command.to_owned(),
        confinement: setup.options.confinement,
        network: setup.options.network,
        workspace: call.workspace.clone(),
        kernel: setup.kernel,
        helper: setup.options.helper.clone(),
        limits: setup.options.limits,
    };
    let mut stop = pin!(stop);
    let mut starting = pin!(process::start(commission)?);
    let (started, early) = tokio::select! {
        biased;
        started = &mut starting => (Some(started), None),
        // A hanging workspace can block the start. A command that still starts later is killed,
        // because its receiver is gone.
        why = &mut stop => (timeout(limits::THREAD_GRACE, starting).await.ok(), Some(why)),
    };
    let Some(started) = started else { return Err(never_started(early)) };
    let mut started =
        started.map_err(|_| ErrorKind::internal("the thread that starts commands ended"))??;
    let stop = async {
        match early {
            Some(why) => why,
            None => stop.await,
        }
    };
    let stdout = ChildStdout::from_std(started.take_output()?)?;
    let confined = started.confined;
    let ending = watch::follow(started, stdout, stop, call.sink, setup.patience).await;
    Ok((report::output(command, &ending, confined), report::usage(&ending)))
}

fn never_started(why: Option<Why>) -> ErrorKind {
    match why {
        Some(Why::OwnLimit(limit)) => ErrorKind::Unanswered { limit },
        Some(Why::Told) | None => ErrorKind::Cancelled,
    }
}
