//! A command without a helper: this process starts the shell and signals its process group.

use super::running::{ExitStatus, KillHandle, RunningCommand};
use super::{CommandSpec, HostStreams, StartSender};
use crate::confine::Confined;
use crate::environment;
use crate::launch::{self, LaunchRequest, LaunchSite};
use crate::start_error::StartError;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::convert::Infallible;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// The process group of a command.
///
/// Its ID is the process ID of the shell. The shell is not reaped while this value lives: a zombie
/// keeps its process ID and its group's from being reused. A signal sent here therefore only
/// reaches the command.
pub(crate) struct ProcessGroup {
    leader: Pid,
    /// Set if the shell was reaped elsewhere (the program ignores SIGCHLD, or waits for any child):
    /// its process ID may be reused from then on.
    is_lost: Arc<AtomicBool>,
    /// Dropped last, which lets the attending thread reap the shell.
    _release: mpsc::Sender<Infallible>,
}

impl ProcessGroup {
    /// Sends a signal to every process of the group.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.is_lost.load(Ordering::SeqCst) {
            // Fails if all processes have ended.
            let _ = kill_process_group(self.leader, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// A shell that was just started, with its output.
pub(super) struct Launched {
    child: Child,
    streams: HostStreams,
    confined: Confined,
}

/// Starts the shell. The host's other threads stay unconfined.
pub(super) fn launch(spec: &CommandSpec, request: &LaunchRequest) -> Result<Launched, StartError> {
    let (streams, its_streams) = request.streams.open()?;
    let directory = environment::working_directory(&spec.workspace);
    let site = LaunchSite {
        workspace: spec.workspace.dir().as_fd(),
        directory: Some(&directory),
        protected_threads: &[],
        kernel: spec.kernel,
    };
    let (child, confined) = launch::launch(request, site, its_streams.into_stdio()?)?;
    Ok(Launched { child, streams, confined })
}

/// Hands the command over, waits for its end and reports it, and reaps the shell when its group is
/// no longer needed.
pub(super) fn attend(launched: Launched, home: &Path, sender: StartSender) {
    let Launched { mut child, streams, confined } = launched;
    let leader = Pid::from_child(&child);
    let is_lost = Arc::new(AtomicBool::new(false));
    let (release, released) = mpsc::channel();
    let group = ProcessGroup { leader, is_lost: is_lost.clone(), _release: release };
    let (running, notifier) = RunningCommand::new(KillHandle::Group(group), confined, streams);
    // If the call was dropped meanwhile, the group was dropped as well, which kills the command.
    drop(sender.send(Ok(running)));
    let status = wait_without_reaping(leader);
    is_lost.store(status == ExitStatus::Unknown, Ordering::SeqCst);
    // Fails if the call was dropped.
    let _ = notifier.exit.send(status);
    // Reap only after the group was dropped, because nothing signals it from then on.
    let _ = released.recv();
    let _ = child.wait();
    environment::remove_home(home);
    let _ = notifier.cleaned_up.send(());
}

/// Waits for the end of a process without reaping it.
fn wait_without_reaping(leader: Pid) -> ExitStatus {
    loop {
        match waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                return ExitStatus::from_wait(status.exit_status(), status.terminating_signal());
            }
            Err(rustix::io::Errno::INTR) | Ok(None) => {}
            Err(_) => return ExitStatus::Unknown,
        }
    }
}
