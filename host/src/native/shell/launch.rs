//! Starting the shell: its surroundings, its confinement, and then the shell itself.

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

/// What is to be run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) command: String,
    /// The private directory, which is there.
    pub(super) home: PathBuf,
    /// The time zone that the command is told.
    pub(super) zone: Option<String>,
    pub(super) confinement: Confinement,
    pub(super) network: Network,
}

/// Where it is to be run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    /// The workspace, which the command may change.
    pub(super) workspace: BorrowedFd<'a>,
    /// Where the command starts. None where this process is there already.
    pub(super) directory: Option<&'a Path>,
    /// The threads of a process that the command may not signal.
    pub(super) spared: &'a [i32],
    pub(super) kernel: Kernel,
}

/// Starts the shell from a thread that is thrown away, and waits for that thread. The caller stays as it is.
pub(super) fn launch(order: &Order, site: Site<'_>, output: [Stdio; 2]) -> Result<(Child, Confined), Unfit> {
    // The writing ends end with the thread: as long as they are open the output has no end.
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("palisade-confined".to_owned()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, || from_this_thread(order, site, output))?;
        thread.join().unwrap_or_else(|_| Err(Unfit::Failed("the thread that confines it panicked".to_owned())))
    })
}

/// Confines the calling thread for good, and starts the shell from it. A restriction is inherited, and cannot be lifted: the thread is of no other use.
fn from_this_thread(order: &Order, site: Site<'_>, output: [Stdio; 2]) -> Result<(Child, Confined), Unfit> {
    // First: what the command would inherit stands in `/proc`, which a confined thread cannot read.
    let mut command = surroundings::shell(&order.command, order.confinement)?;
    let [stdout, stderr] = output;
    command.env_clear().envs(surroundings::environment(&order.home, order.zone.as_deref()));
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
    if let Some(directory) = site.directory {
        command.current_dir(directory);
    }
    let bounds = Bounds { workspace: site.workspace, home: &order.home, network: order.network, spared: site.spared };
    let confined = match order.confinement {
        Confinement::Landlock => confine::this_thread(bounds, site.kernel)?,
        Confinement::Unconfined => Confined::UNCONFINED,
    };
    let child = command.spawn().map_err(|error| Unfit::Start(error.to_string()))?;
    Ok((child, confined))
}
