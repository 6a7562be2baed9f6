//! The thread that starts the shell, and later stops, continues or kills the whole command at once.
//! Its signals can only reach the command.
//!
//! The Landlock domain of the command is nested in that of this thread, so that the command cannot
//! signal this thread: a signal to one thread ends or stops the whole helper.

use super::process_tree;
use super::reaper::HIGHEST_PRIORITY;
use crate::confine::{self, Confined, Kernel};
use crate::launch::{self, LaunchRequest, LaunchSite};
use crate::process::{CommandStreams, STACK};
use crate::start_error::StartError;
use crate::{Confinement, ShellLimits};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getppid, kill_process_group, setpriority_process, test_kill_process,
};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// The interval at which the number of tasks of the system is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The least growth of the number of tasks at which a command is stopped.
const LEAST_GROWTH: u64 = 256;

/// A handle of the thread. Only that thread can signal the command, because its Landlock domain
/// applies to no other.
pub(super) struct Killer {
    orders: Sender<Order>,
    is_frozen: Arc<AtomicBool>,
}

enum Order {
    /// Kill the command, and tell whether that reached all of its processes.
    Kill(Sender<Reached>),
    /// Continue the frozen command.
    Resume,
}

/// Whether a signal has reached all processes of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    All,
    /// The kernel does not confine signals to the command, so that none was sent.
    None,
}

impl Killer {
    /// Sends SIGKILL to all processes of the command in one system call, which no fork bomb can
    /// outrun. Does nothing if the kernel does not confine the signal to the command.
    pub(super) fn kill(&self) -> Reached {
        let (done_sender, done) = channel();
        match self.orders.send(Order::Kill(done_sender)) {
            Ok(()) => done.recv().unwrap_or(Reached::None),
            Err(_) => Reached::None,
        }
    }

    /// Returns true if the command was stopped because the tasks of the system have become many
    /// more. A stopped command does not fork while it is counted.
    pub(super) fn is_frozen(&self) -> bool {
        self.is_frozen.load(Ordering::Acquire)
    }

    /// Continues a command that was stopped and has kept its limits.
    pub(super) fn resume(&self) {
        let _ = self.orders.send(Order::Resume);
    }
}

/// Starts the shell from a thread whose signals are confined permanently.
pub(super) fn start(
    request: LaunchRequest,
    workspace: OwnedFd,
    streams: CommandStreams,
    limits: ShellLimits,
) -> Result<(Child, Confined, Killer), StartError> {
    let (orders, received) = channel();
    let (outcome_sender, outcome) = channel();
    let is_frozen = Arc::new(AtomicBool::new(false));
    let frozen = is_frozen.clone();
    let run = move || {
        let (started, reach) = begin(&request, &workspace, streams);
        if outcome_sender.send(started).is_ok() {
            serve(&received, reach, &frozen, limits);
        }
    };
    thread::Builder::new().name("palisade-killer".to_owned()).stack_size(STACK).spawn(run)?;
    let panicked = |_| StartError::Internal("the thread that has it started panicked".to_owned());
    let (child, confined) = outcome.recv().map_err(panicked)??;
    Ok((child, confined, Killer { orders, is_frozen }))
}

type Outcome = Result<(Child, Confined), StartError>;

/// Starts the shell. Returns whether signals of this thread reach the command and nothing else.
fn begin(
    request: &LaunchRequest,
    workspace: &OwnedFd,
    streams: CommandStreams,
) -> (Outcome, Reached) {
    // Includes this thread.
    let protected_threads = process_tree::threads();
    let host = HostProcess::find();
    let scoped = match request.confinement {
        Confinement::Landlock => confine::scope_signals(),
        Confinement::Unconfined => Ok(()),
    };
    let started = scoped.and_then(|()| launch(request, workspace, streams, &protected_threads));
    // Raise the priority for the final kill. Best effort: only root may.
    let _ = setpriority_process(None, HIGHEST_PRIORITY);
    let is_scoped = host.is_some_and(HostProcess::is_out_of_reach);
    (started, if is_scoped { Reached::All } else { Reached::None })
}

/// Carries out orders, and stops the command when the tasks of the system become many more: in a
/// fork bomb the helper would wait for the processor before each step of its count.
fn serve(orders: &Receiver<Order>, reach: Reached, is_frozen: &AtomicBool, limits: ShellLimits) {
    let signal_all = |signal| {
        if reach == Reached::All {
            // The process ID -1 addresses all processes that this thread may signal: those of the
            // command. The kernel excludes the calling process itself.
            let _ = kill_process_group(Pid::INIT, signal);
        }
    };
    let mut growth = TaskGrowth::new(limits.processes);
    loop {
        match orders.recv_timeout(LOOK_INTERVAL) {
            Ok(Order::Kill(done)) => {
                signal_all(Signal::KILL);
                let _ = done.send(reach);
            }
            Ok(Order::Resume) => {
                growth = TaskGrowth::new(limits.processes);
                is_frozen.store(false, Ordering::Release);
                signal_all(Signal::CONT);
            }
            Err(RecvTimeoutError::Timeout) => {
                if reach == Reached::All && !is_frozen.load(Ordering::Acquire) && growth.is_over() {
                    signal_all(Signal::STOP);
                    is_frozen.store(true, Ordering::Release);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The growth of the number of tasks of the system: reading it takes one small file, whatever
/// their number.
struct TaskGrowth {
    least: u64,
    most: u64,
}

impl TaskGrowth {
    /// Begins to observe growth by more than `processes` tasks. Small limits are left to the count:
    /// other programs start some tasks as well.
    fn new(processes: u64) -> Self {
        Self { least: system_tasks().unwrap_or(u64::MAX), most: processes.max(LEAST_GROWTH) }
    }

    fn is_over(&mut self) -> bool {
        let Some(now) = system_tasks() else { return false };
        self.least = self.least.min(now);
        now - self.least > self.most
    }
}

/// Returns the number of all tasks, from the fourth field of `/proc/loadavg` (`proc_loadavg(5)`):
/// `running/all`.
fn system_tasks() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
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
