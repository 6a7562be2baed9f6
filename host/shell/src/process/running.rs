//! A running command, as the call sees it: its exit, its output, and a handle to kill it.

use super::direct::ProcessGroup;
use super::streams::HostStreams;
use crate::confine::Confined;
#[cfg(target_os = "linux")]
use crate::helper::HelperHandle;
use palisade::ErrorKind;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// How a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ExitStatus {
    Exited(i32),
    Killed(i32),
    /// Killed with all of its processes, because they exceeded a limit.
    Exceeded(ExceededLimit),
    /// Unknown: another part of this process reaped the shell, or the kernel does not end it.
    Unknown,
}

impl ExitStatus {
    /// Converts the wait status of the kernel.
    pub(crate) fn from_wait(code: Option<i32>, signal: Option<i32>) -> Self {
        code.map(Self::Exited).or(signal.map(Self::Killed)).unwrap_or(Self::Unknown)
    }
}

/// The exceeded limit of a command, with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ExceededLimit {
    Processes(u64),
    Threads(u64),
    Memory(u64),
}

/// A running command.
pub(crate) struct RunningCommand {
    pub(crate) processes: KillHandle,
    pub(crate) confined: Confined,
    pub(crate) exit: oneshot::Receiver<ExitStatus>,
    /// Completes when the processes are reaped and the home directory is removed, after the handle
    /// was dropped.
    pub(crate) cleaned_up: oneshot::Receiver<()>,
    streams: Option<HostStreams>,
}

/// The messages that the attending thread still has to send.
pub(crate) struct ExitNotifier {
    pub(crate) exit: oneshot::Sender<ExitStatus>,
    pub(crate) cleaned_up: oneshot::Sender<()>,
}

impl RunningCommand {
    pub(crate) fn new(
        processes: KillHandle,
        confined: Confined,
        streams: HostStreams,
    ) -> (Self, ExitNotifier) {
        let (exit_sender, exit) = oneshot::channel();
        let (cleanup_sender, cleaned_up) = oneshot::channel();
        (
            Self { processes, confined, exit, cleaned_up, streams: Some(streams) },
            ExitNotifier { exit: exit_sender, cleaned_up: cleanup_sender },
        )
    }

    /// Returns the host's ends of the command's pipes; only once.
    pub(crate) fn take_streams(&mut self) -> Result<HostStreams, ErrorKind> {
        self.streams
            .take()
            .ok_or_else(|| ErrorKind::internal("the pipes of a command were taken twice"))
    }
}

/// The processes of a command, killed on drop.
pub(crate) enum KillHandle {
    /// The process group: all processes that have not left it.
    Group(ProcessGroup),
    /// All processes, through their helper.
    #[cfg(target_os = "linux")]
    Helper(HelperHandle),
}

impl KillHandle {
    /// Sends SIGTERM to the process group, and SIGCONT, because a stopped process handles the
    /// signal only when continued.
    pub(crate) fn terminate(&self) {
        match self {
            Self::Group(group) => {
                group.signal(Signal::TERM);
                group.signal(Signal::CONT);
            }
            #[cfg(target_os = "linux")]
            Self::Helper(helper) => helper.terminate(),
        }
    }

    /// Kills all processes.
    pub(crate) fn kill(&self) {
        match self {
            Self::Group(group) => group.signal(Signal::KILL),
            #[cfg(target_os = "linux")]
            Self::Helper(helper) => helper.kill(),
        }
    }
}
