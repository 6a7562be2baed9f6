//! Starts the shell with its environment and its confinement.

use crate::confine::{self, Bounds, Confined, Kernel};
use crate::process::{STACK, Streams};
use crate::start_error::StartError;
use crate::{Confinement, Network, environment};
use rustix::process::{getpriority_process, setpriority_process};
use serde::{Deserialize, Serialize};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;

/// The scheduling priority of a command (`nice`). It takes no right to lower it.
const PRIORITY: i32 = 10;

/// The parameters of a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LaunchRequest {
    pub(crate) command: String,
    /// The private home directory, which exists.
    pub(crate) home: PathBuf,
    /// The time zone for the command.
    pub(crate) time_zone: Option<String>,
    pub(crate) confinement: Confinement,
    pub(crate) network: Network,
    pub(crate) streams: Streams,
    /// Further variables of its environment, which replace those of the same names.
    pub(crate) variables: Vec<(String, String)>,
    /// Further files and directories that a confined command may read and execute.
    pub(crate) readable: Vec<PathBuf>,
}

/// The place where a command runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchSite<'a> {
    /// The workspace, which the command may change.
    pub(crate) workspace: BorrowedFd<'a>,
    /// The working directory. `None` if it is that of this process already.
    pub(crate) directory: Option<&'a Path>,
    /// The threads of a process that the command must not signal.
    pub(crate) protected_threads: &'a [i32],
    pub(crate) kernel: Kernel,
}

/// Starts the shell from a temporary thread and waits for that thread. The calling thread is not
/// confined.
pub(crate) fn launch(
    request: &LaunchRequest,
    site: LaunchSite<'_>,
    streams: [Stdio; 3],
) -> Result<(Child, Confined), StartError> {
    // The command's ends are closed with the thread: an open one would prevent the end of a stream.
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("palisade-confined".to_owned()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, || from_this_thread(request, site, streams))?;
        thread.join().unwrap_or_else(|_| {
            Err(StartError::Internal("the thread that confines it panicked".to_owned()))
        })
    })
}

/// Confines the calling thread permanently and starts the shell from it. Threads cannot lift a
/// confinement, so that this thread is of no other use.
fn from_this_thread(
    request: &LaunchRequest,
    site: LaunchSite<'_>,
    streams: [Stdio; 3],
) -> Result<(Child, Confined), StartError> {
    if request.streams == Streams::Output {
        // So that the helper keeps up with a fork bomb: of thousands of processes with its own
        // priority, each would run before it.
        let own = getpriority_process(None).unwrap_or_default();
        let _ = setpriority_process(None, own.max(PRIORITY));
    }
    // Before the confinement: the list of inherited descriptors is in `/proc`.
    let mut command = environment::shell_command(&request.command, request.confinement)?;
    let [stdin, stdout, stderr] = streams;
    command.env_clear().envs(environment::variables(&request.home, request.time_zone.as_deref()));
    command.envs(request.variables.iter().map(|(name, value)| (name, value)));
    command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
    match (request.streams, site.directory) {
        // Programs look for code in their working directory and above it, and tools can write in
        // the workspace.
        (Streams::Service, _) => drop(command.current_dir("/")),
        (Streams::Output, Some(directory)) => drop(command.current_dir(directory)),
        (Streams::Output, None) => {}
    }
    let bounds = Bounds {
        workspace: site.workspace,
        home: &request.home,
        readable: &request.readable,
        network: request.network,
        protected_threads: site.protected_threads,
    };
    let confined = match request.confinement {
        Confinement::Landlock => confine::confine_this_thread(bounds, site.kernel)?,
        Confinement::Unconfined => Confined::UNCONFINED,
    };
    let child = command.spawn().map_err(|error| {
        StartError::no_thread(&error).unwrap_or_else(|| StartError::Spawn(error.to_string()))
    })?;
    Ok((child, confined))
}
