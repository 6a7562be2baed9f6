//! The processes of one command: started on a thread of their own, attended to until they have ended, and signalled
//! only while their number is theirs.

use super::confine::{Confined, Kernel};
use super::launch::{self, Order, Site};
use super::unfit::Unfit;
use super::{Confinement, Network, ShellHelper, ShellLimits, surroundings};
use crate::tool::{ErrorKind, Limit};
use crate::workspace::Workspace;
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

/// The stack of the threads here, in bytes: they do little, and nothing deep.
pub(super) const STACK: usize = 256 << 10;

/// A command, and everything that its start needs.
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
    /// The order for it, with a private directory that is to be removed at the end of the command.
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
    /// It was killed with all of its processes, which took more than they may.
    Exceeded(Excess),
    /// Somebody else in this process took its status, or the kernel does not let go of it.
    Unknown,
}

impl End {
    /// The end that the kernel tells of.
    pub(super) fn of(code: Option<i32>, signal: Option<i32>) -> Self {
        code.map(Self::Exited).or(signal.map(Self::Killed)).unwrap_or(Self::Unknown)
    }
}

/// What the processes of a command took too much of, with the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Excess {
    Processes(u64),
    Memory(u64),
}

/// A command that runs.
pub(super) struct Started {
    pub(super) group: Group,
    pub(super) confined: Confined,
    pub(super) ended: oneshot::Receiver<End>,
    /// Completes when all of it is reaped and its private directory removed, after the group has been dropped.
    pub(super) tidied: oneshot::Receiver<()>,
    output: Option<ChildStdout>,
}

impl Started {
    /// The reading end of what the command writes; once.
    pub(super) fn take_output(&mut self) -> Result<ChildStdout, ErrorKind> {
        self.output.take().ok_or_else(|| ErrorKind::internal("the output of a command was taken twice"))
    }
}

/// The processes of a command, which are killed when this is dropped.
pub(super) enum Group {
    /// The process group, and what the command did not move out of it.
    Own(OwnGroup),
    /// All of them, by their helper.
    #[cfg(target_os = "linux")]
    Held(helper::Leash),
}

impl Group {
    /// Asks every process of the group to end. A stopped one takes the signal when it goes on.
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

    /// Ends them all.
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
/// Its number is the shell's process id. The shell is not reaped as long as this lives: a zombie keeps its id, and with it the group's, from being given to
/// anybody else. So whatever is signalled here belongs to the command.
pub(super) struct OwnGroup {
    leader: Pid,
    /// Set where the shell was reaped behind our back (the program ignores SIGCHLD, or waits for any child): its number may be another's from then on.
    lost: Arc<AtomicBool>,
    /// Dropped last, which lets the attending thread reap.
    _release: mpsc::Sender<Infallible>,
}

impl OwnGroup {
    /// Sends a signal to every process of the group.
    fn signal(&self, signal: Signal) {
        if !self.lost.load(Ordering::SeqCst) {
            // Whoever has ended by now needs none.
            let _ = kill_process_group(self.leader, signal);
        }
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Starts a command on a thread of its own, which then attends to it: no runtime has to be alive for its end.
///
/// # Errors
///
/// Where there is no thread to be had; what else goes wrong comes through the receiver.
pub(super) fn start(commission: Commission) -> Result<oneshot::Receiver<Result<Started, ErrorKind>>, ErrorKind> {
    let (sender, receiver) = oneshot::channel();
    let starting = Starting::one_more()?;
    let attend = move || match commission.order() {
        Ok(order) => hold(&commission, &order, starting, sender),
        // Nobody waits any more: then nobody wants to know.
        Err(error) => drop(sender.send(Err(error.into()))),
    };
    thread::Builder::new().name("palisade-shell".to_owned()).stack_size(STACK).spawn(attend)?;
    Ok(receiver)
}

/// Starts the command, attends to it, and removes its private directory.
fn hold(
    commission: &Commission,
    order: &Order,
    starting: Starting,
    sender: oneshot::Sender<Result<Started, ErrorKind>>,
) {
    #[cfg(target_os = "linux")]
    if let Some(program) = &commission.helper {
        return match helper::launch(commission, order, program) {
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

/// Commands that are being started at once. Each has two threads, which stay where the workspace hangs in the kernel.
const STARTING: usize = 64;

/// A command that is being started.
pub(super) struct Starting;

impl Starting {
    fn count() -> &'static AtomicUsize {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        &COUNT
    }

    fn one_more() -> Result<Self, ErrorKind> {
        if Self::count().fetch_add(1, Ordering::Relaxed) >= STARTING {
            Self::count().fetch_sub(1, Ordering::Relaxed);
            return Err(ErrorKind::ResourceExhausted { limit: Limit::LostThreads, value: STARTING as u64 });
        }
        Ok(Self)
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        Self::count().fetch_sub(1, Ordering::Relaxed);
    }
}

/// A shell that has just been started, and what belongs to it.
struct Launched {
    child: Child,
    output: ChildStdout,
    confined: Confined,
}

/// Starts the shell. The host's other threads stay as they are.
fn launch(commission: &Commission, order: &Order) -> Result<Launched, Unfit> {
    // One pipe for both streams: what is read has the order in which it was written.
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

/// Hands the command over, waits for its end and tells it, and reaps the shell when its group is no longer needed.
fn attend(launched: Launched, home: &Path, sender: oneshot::Sender<Result<Started, ErrorKind>>) {
    let Launched { mut child, output, confined } = launched;
    let leader = Pid::from_child(&child);
    let lost = Arc::new(AtomicBool::new(false));
    let (release, released) = mpsc::channel();
    let (group, ends) =
        Started::of(Group::Own(OwnGroup { leader, lost: lost.clone(), _release: release }), confined, output);
    // Where the call has been dropped meanwhile, so is the group, which kills it.
    drop(sender.send(Ok(group)));
    let end = wait(leader);
    lost.store(end == End::Unknown, Ordering::SeqCst);
    // Neither matters to a call that has been dropped.
    let _ = ends.tell.send(end);
    let _ = released.recv();
    let _ = child.wait();
    surroundings::tidy_up(home);
    let _ = ends.tidy.send(());
}

/// What the thread that attends to a command still has to tell.
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

/// Waits for the end without reaping.
fn wait(leader: Pid) -> End {
    loop {
        match waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => return End::of(status.exit_status(), status.terminating_signal()),
            Err(rustix::io::Errno::INTR) | Ok(None) => {}
            Err(_) => return End::Unknown,
        }
    }
}
