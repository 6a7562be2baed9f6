//! One call: started, followed, reported.

use super::process::{self, Order};
use super::watch::{self, Why};
use super::{Setup, report};
use crate::execution::{ToolContext, ToolOutput};
use crate::tool::ErrorKind;
use std::future::Future;
use std::sync::Arc;
use tokio::process::ChildStdout;

/// Runs a command until it ends or `stop` completes.
pub(super) async fn run(
    command: &str,
    setup: Setup,
    context: &ToolContext,
    stop: impl Future<Output = Why>,
) -> Result<ToolOutput, ErrorKind> {
    let order = Order {
        command: command.to_owned(),
        workspace: context.workspace().clone(),
        confinement: setup.confinement,
        kernel: setup.kernel,
    };
    let lost = |_| ErrorKind::internal("the thread that starts commands ended");
    let mut started = process::start(order)?.await.map_err(lost)??;
    let stdout = ChildStdout::from_std(started.take_output()?)?;
    let confined = started.confined;
    let sink = Arc::clone(context.sink());
    let ending = watch::follow(started, stdout, stop, &*sink, setup.patience).await;
    context.set_report(report::usage(&ending));
    Ok(report::output(command, &ending, confined))
}
