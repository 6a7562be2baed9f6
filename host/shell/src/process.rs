//! The processes of one command: started and attended to by a separate thread, and signalled only
//! while their process ID is valid.
//!
//! The thread waits for the shell without reaping it, so that the ID of its process group cannot be
//! reused while the group may still be signalled. No runtime is needed to end a command.

use super::confine::{Confined, Kernel};
use super::launch::{self, Order, Site};
use super::unfit::Unfit;
use super::{Confinement, Network, ShellHelper, ShellLimits, surroundings};
use palisade::tool::{ErrorKind, Limit};
use palisade::workspace::Workspace;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, ChildStdout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use tokio::sync::oneshot;

#[cfg(target_os = "linux")]
use super::helper;

/// The stack size of these threads, in bytes: they do little work, without recursion.
pub(super) const STACK: usize = 256 << 10;

/// A command with everything that starting it needs.
pub(super) struct Commission {
    pub(super) command: String,
    pub(super) confinement: Confinement,
    pub(super) network: Network,
    pub(super) workspace: Arc<Workspace>,
    pub(super) kernel: Kernel,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no helper"))]
    pub(super) helper: Option<Arc<ShellHelper>>,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only a helper counts"))]
    pub(super) limits: ShellLimits,
}

impl Commission {
    /// Returns the order for a helper, with a new home directory that the caller has to remove.
    pub(super) fn order(&self) -> std::io::Result<Order> {
        Ok(Order {
            command: self.command.clone(),
            home: surroundings::home(self.workspace.root())?.keep(),
            zone: surroundings::zone(),
            confinement: self.confinement,
            network: self.network,
        })
    }
}

/// How a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    Exited(i32),
    Killed(i32),
    /// Killed with all of its processes, because they exceeded a limit.
    Exceeded(Excess),
    /// Unknown: another part of this process reaped the shell, or the kernel does not end it.
    Unknown,
}

impl End {
    /// Returns the end from the wait status of the kernel.
    pub(super) fn of(code: Option<i32>, signal: Option<i32>) -> Self {
        code.map(Self::Exited).or(signal.map(Self::Killed)).unwrap_or(Self::Unknown)
    }
}

/// The exceeded limit of a command, with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Excess {
    Processes(u64),
    Memory(u64),
}

/// A running command.
pub(super) struct Started {
    pub(super) group: Group,
    pub(super) confined: Confined,
    pub(super) ended: oneshot::Receiver<End>,
    /// Completes when the processes are reaped and the home directory is removed, after the group
    /// was dropped.
    pub(super) tidied: oneshot::Receiver<()>,
    output: Option<ChildStdout>,
}

impl Started {
    /// Returns the read end of the command's output; only once.
    pub(super) fn take_output(&mut self) -> Result<ChildStdout, ErrorKind> {
        self.output
            .take()
            .ok_or_else(|| ErrorKind::internal("the output of a command was taken twice"))
    }
}

/// The processes of a command, killed on drop.
pub(super) enum Group {
    /// The process group: all processes that have not left it.
    Own(OwnGroup),
    /// All processes, through their helper.
    #[cfg(target_os = "linux")]
    Held(helper::Leash),
}

impl Group {
    /// Sends SIGTERM to the process group, and SIGCONT, because a stopped process handles the
    /// signal only when continued.
    pub(super) fn terminate(&self) {
        match self {
            Self::Own(group) => {
                group.signal(Signal::TERM);
                group.signal(Signal::CONT);
            }
            #[cfg(target_os = "linux")]
            Self::Held(leash) => leash.terminate(),
        }
    }

    /// Kills all processes.
    pub(super) fn kill(&self) {
        match self {
            Self::Own(group) => group.signal(Signal::KILL),
            #[cfg(target_os = "linux")]
            Self::Held(leash) => leash.kill(),
        }
    }
}

/// The process group of a command.
///
/// Its ID is the process ID of the shell. The shell is not reaped while this value lives: a zombie
/// keeps its process ID and its group's from being reused. A signal sent here therefore only
/// reaches the command.
pub(super) struct OwnGroup {
    leader: Pid,
    /// Set if the shell was reaped elsewhere (the program ignores SIGCHLD, or waits for any child):
    /// its process ID may be reused from then on.
    lost: Arc<AtomicBool>,
    /// Dropped last, which lets the attending thread reap the shell.
    _release: mpsc::Sender<Infallible>,
}

impl OwnGroup {
    /// Sends a signal to every process of the group.
    fn signal(&self, signal: Signal) {
        if !self.lost.load(Ordering::SeqCst) {
            // Fails if all processes have ended.
            let _ = kill_process_group(self.leader, signal);
        }
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Starts a command on a separate thread, which then attends to it, so that its end does not depend
/// on a runtime.
///
/// # Errors
///
/// If the thread cannot be started. All other errors arrive through the receiver.
pub(super) fn start(
    commission: Commission,
) -> Result<oneshot::Receiver<Result<Started, ErrorKind>>, ErrorKind> {
    let (sender, receiver) = oneshot::channel();
    let starting = Starting::one_more()?;
    let attend = move || match commission.order() {
        Ok(order) => hold(&commission, &order, starting, sender),
        // The send fails if the call was dropped.
        Err(error) => drop(sender.send(Err(error.into()))),
    };
    thread::Builder::new().name("palisade-shell".to_owned()).stack_size(STACK).spawn(attend)?;
    Ok(receiver)
}

/// Starts the command, attends to it, and removes its home directory.
fn hold(
    commission: &Commission,
    order: &Order,
    starting: Starting,
    sender: oneshot::Sender<Result<Started, ErrorKind>>,
) {
    #[cfg(target_os = "linux")]
    if let Some(program) = &commission.helper {
        return match helper::launch(commission, order, program, || sender.is_closed()) {
            Ok(held) => {
                drop(starting);
                helper::attend(held, &order.home, sender);
            }
            Err(error) => {
                surroundings::tidy_up(&order.home);
                drop(sender.send(Err(error)));
            }
        };
    }
    match launch(commission, order) {
        Ok(launched) => {
            drop(starting);
            attend(launched, &order.home, sender);
        }
        Err(unfit) => {
            surroundings::tidy_up(&order.home);
            drop(sender.send(Err(unfit.into())));
        }
    }
}

/// Maximum number of commands that are being started. Each uses two threads, which block if the
/// workspace hangs in the kernel.
const STARTING: usize = 64;

/// A permit of a command that is being started.
pub(super) struct Starting;

impl Starting {
    fn count() -> &'static AtomicUsize {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        &COUNT
    }

    fn one_more() -> Result<Self, ErrorKind> {
        if Self::count().fetch_add(1, Ordering::Relaxed) >= STARTING {
            Self::count().fetch_sub(1, Ordering::Relaxed);
            return Err(ErrorKind::ResourceExhausted {
                limit: Limit::LostThreads,
                value: STARTING as u64,
            });
        }
        Ok(Self)
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        Self::count().fetch_sub(1, Ordering::Relaxed);
    }
}

/// A shell that was just started, with its output.
struct Launched {
    child: Child,
    output: ChildStdout,
    confined: Confined,
}

/// Starts the shell. The host's other threads stay unconfined.
fn launch(commission: &Commission, order: &Order) -> Result<Launched, Unfit> {
    // One pipe for both streams keeps the order of the writes.
    let (reader, writer) = std::io::pipe()?;
    let output = [writer.try_clone()?.into(), writer.into()];
    let directory = surroundings::directory(&commission.workspace);
    let site = Site {
        workspace: commission.workspace.dir().as_fd(),
        directory: Some(&directory),
        spared: &[],
        kernel: commission.kernel,
    };
    let (child, confined) = launch::launch(order, site, output)?;
    Ok(Launched { child, output: OwnedFd::from(reader).into(), confined })
}

/// Hands the command over, waits for its end and reports it, and reaps the shell when its group is
/// no longer needed.
fn attend(launched: Launched, home: &Path, sender: oneshot::Sender<Result<Started, ErrorKind>>) {
    let Launched { mut child, output, confined } = launched;
    let leader = Pid::from_child(&child);
    let lost = Arc::new(AtomicBool::new(false));
    let (release, released) = mpsc::channel();
    let (group, ends) = Started::of(
        Group::Own(OwnGroup { leader, lost: lost.clone(), _release: release }),
        confined,
        output,
    );
    // If the call was dropped meanwhile, the group was dropped as well, which kills the command.
    drop(sender.send(Ok(group)));
    let end = wait(leader);
    lost.store(end == End::Unknown, Ordering::SeqCst);
    // Fails if the call was dropped.
    let _ = ends.tell.send(end);
    // Reap only after the group was dropped, because nothing signals it from then on.
    let _ = released.recv();
    let _ = child.wait();
    surroundings::tidy_up(home);
    let _ = ends.tidy.send(());
}

/// The messages that the attending thread still has to send.
pub(super) struct Ends {
    pub(super) tell: oneshot::Sender<End>,
    pub(super) tidy: oneshot::Sender<()>,
}

impl Started {
    pub(super) fn of(group: Group, confined: Confined, output: ChildStdout) -> (Self, Ends) {
        let (tell, ended) = oneshot::channel();
        let (tidy, tidied) = oneshot::channel();
        (Self { group, confined, ended, tidied, output: Some(output) }, Ends { tell, tidy })
    }
}

/// Waits for the end of a process without reaping it.
fn wait(leader: Pid) -> End {
    loop {
        match waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => return End::of(status.exit_status(), status.terminating_signal()),
            Err(rustix::io::Errno::INTR) | Ok(None) => {}
            Err(_) => return End::Unknown,
        }
    }
}
