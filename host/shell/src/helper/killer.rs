//! The thread that starts the shell and later kills the whole command at once. Its signals can only
//! reach the command.
//!
//! The Landlock domain of the command is nested in that of this thread, so that the command cannot
//! signal this thread: a signal to one thread ends or stops the whole helper.

use super::process_tree;
use super::reaper::HIGHEST_PRIORITY;
use crate::Confinement;
use crate::confine::{self, Confined, Kernel};
use crate::launch::{self, LaunchRequest, LaunchSite};
use crate::process::{CommandStreams, STACK};
use crate::start_error::StartError;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getppid, kill_process_group, setpriority_process, test_kill_process,
};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A handle of the thread. Only that thread can kill, because its Landlock domain applies to no
/// other.
pub(super) struct Killer {
    requests: Sender<Sender<()>>,
}

impl Killer {
    /// Sends SIGKILL to all processes of the command in one system call, which no fork bomb can
    /// outrun. Does nothing if the kernel does not confine the signal to the command.
    pub(super) fn kill(&self) {
        let (done_sender, done) = channel();
        if self.requests.send(done_sender).is_ok() {
            let _ = done.recv();
        }
    }
}

/// Starts the shell from a thread whose signals are confined permanently.
pub(super) fn start(
    request: LaunchRequest,
    workspace: OwnedFd,
    streams: CommandStreams,
) -> Result<(Child, Confined, Killer), StartError> {
    let (requests, kills) = channel();
    let (outcome_sender, outcome) = channel();
    let run = move || serve(&request, &workspace, streams, &outcome_sender, &kills);
    thread::Builder::new().name("palisade-killer".to_owned()).stack_size(STACK).spawn(run)?;
    let panicked = |_| StartError::Internal("the thread that has it started panicked".to_owned());
    let (child, confined) = outcome.recv().map_err(panicked)??;
    Ok((child, confined, Killer { requests }))
}

type Outcome = Result<(Child, Confined), StartError>;

fn serve(
    request: &LaunchRequest,
    workspace: &OwnedFd,
    streams: CommandStreams,
    outcome: &Sender<Outcome>,
    kills: &Receiver<Sender<()>>,
) {
    // Includes this thread.
    let protected_threads = process_tree::threads();
    let host = HostProcess::find();
    let scoped = match request.confinement {
        Confinement::Landlock => confine::scope_signals(),
        Confinement::Unconfined => Ok(()),
    };
    let started = scoped.and_then(|()| launch(request, workspace, streams, &protected_threads));
    let is_scoped = host.is_some_and(HostProcess::is_out_of_reach);
    // Raise the priority for the final kill. Best effort: only root may.
    let _ = setpriority_process(None, HIGHEST_PRIORITY);
    if outcome.send(started).is_err() {
        return;
    }
    for done in kills {
        if is_scoped {
            // The process ID -1 addresses all processes that this thread may signal: those of the
            // command. The kernel excludes the calling process itself.
            let _ = kill_process_group(Pid::INIT, Signal::KILL);
        }
        let _ = done.send(());
    }
}

fn launch(
    request: &LaunchRequest,
    workspace: &OwnedFd,
    streams: CommandStreams,
    protected_threads: &[i32],
) -> Outcome {
    let site = LaunchSite {
        workspace: workspace.as_fd(),
        directory: None,
        protected_threads,
        kernel: Kernel::Running,
    };
    launch::launch(request, site, streams.into_stdio()?)
}

/// The host: a process outside of the command that this thread could signal before it was confined.
#[derive(Clone, Copy)]
struct HostProcess(Pid);

impl HostProcess {
    fn find() -> Option<Self> {
        getppid().filter(|host| test_kill_process(*host).is_ok()).map(Self)
    }

    /// Returns true if Landlock, and no other rule, keeps the signals of this thread from the host.
    fn is_out_of_reach(self) -> bool {
        test_kill_process(self.0) == Err(Errno::PERM) && getppid() == Some(self.0)
    }
}
