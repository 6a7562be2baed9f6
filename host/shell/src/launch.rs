//! Starts the shell with its environment and its confinement.

use super::confine::{self, Bounds, Confined, Kernel};
use super::process::STACK;
use super::unfit::Unfit;
use super::{Confinement, Network, surroundings};
use serde::{Deserialize, Serialize};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;

/// The parameters of a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) command: String,
    /// The private home directory, which exists.
    pub(super) home: PathBuf,
    /// The time zone for the command.
    pub(super) zone: Option<String>,
    pub(super) confinement: Confinement,
    pub(super) network: Network,
}

/// The place where a command runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    /// The workspace, which the command may change.
    pub(super) workspace: BorrowedFd<'a>,
    /// The working directory. `None` if it is that of this process already.
    pub(super) directory: Option<&'a Path>,
    /// The threads of a process that the command must not signal.
    pub(super) spared: &'a [i32],
    pub(super) kernel: Kernel,
}

/// Starts the shell from a temporary thread and waits for that thread. The calling thread is not
/// confined.
pub(super) fn launch(
    order: &Order,
    site: Site<'_>,
    output: [Stdio; 2],
) -> Result<(Child, Confined), Unfit> {
    // The write ends are closed with the thread: an open one would prevent the end of the output.
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("palisade-confined".to_owned()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, || from_this_thread(order, site, output))?;
        thread.join().unwrap_or_else(|_| {
            Err(Unfit::Failed("the thread that confines it panicked".to_owned()))
        })
    })
}

/// Confines the calling thread permanently and starts the shell from it. Threads cannot lift a
/// confinement, so that this thread is of no other use.
fn from_this_thread(
    order: &Order,
    site: Site<'_>,
    output: [Stdio; 2],
) -> Result<(Child, Confined), Unfit> {
    // Before the confinement: the list of inherited descriptors is in `/proc`.
    let mut command = surroundings::shell(&order.command, order.confinement)?;
    let [stdout, stderr] = output;
    command.env_clear().envs(surroundings::environment(&order.home, order.zone.as_deref()));
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
    if let Some(directory) = site.directory {
        command.current_dir(directory);
    }
    let bounds = Bounds {
        workspace: site.workspace,
        home: &order.home,
        network: order.network,
        spared: site.spared,
    };
    let confined = match order.confinement {
        Confinement::Landlock => confine::this_thread(bounds, site.kernel)?,
        Confinement::Unconfined => Confined::UNCONFINED,
    };
    let child = command.spawn().map_err(|error| Unfit::Start(error.to_string()))?;
    Ok((child, confined))
}
