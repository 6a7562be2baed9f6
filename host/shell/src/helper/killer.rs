//! The thread that starts the shell and later kills the whole command at once. Its signals can only
//! reach the command.
//!
//! The Landlock domain of the command is nested in that of this thread, so that the command cannot
//! signal this thread: a signal to one thread ends or stops the whole helper.

use super::census;
use super::reaper::FIRST;
use crate::confine::{self, Confined, Kernel};
use crate::launch::{self, Order, Site};
use crate::options::Confinement;
use crate::process::STACK;
use crate::unfit::Unfit;
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
    ask: Sender<Sender<()>>,
}

impl Killer {
    /// Sends SIGKILL to all processes of the command in one system call, which no fork bomb can
    /// outrun. Does nothing if the kernel does not confine the signal to the command.
    pub(super) fn kill(&self) {
        let (done, over) = channel();
        if self.ask.send(done).is_ok() {
            let _ = over.recv();
        }
    }
}

/// Starts the shell from a thread whose signals are confined permanently.
pub(super) fn start(
    order: Order,
    workspace: OwnedFd,
    output: OwnedFd,
) -> Result<(Child, Confined, Killer), Unfit> {
    let (ask, asked) = channel();
    let (tell, told) = channel();
    let enclosed = move || serve(&order, &workspace, output, &tell, &asked);
    thread::Builder::new().name("palisade-killer".to_owned()).stack_size(STACK).spawn(enclosed)?;
    let gone = |_| Unfit::Failed("the thread that has it started panicked".to_owned());
    let (child, confined) = told.recv().map_err(gone)??;
    Ok((child, confined, Killer { ask }))
}

type Outcome = Result<(Child, Confined), Unfit>;

fn serve(
    order: &Order,
    workspace: &OwnedFd,
    output: OwnedFd,
    tell: &Sender<Outcome>,
    asked: &Receiver<Sender<()>>,
) {
    // Includes this thread.
    let spared = census::threads();
    let host = Outsider::look();
    let enclosed = match order.confinement {
        Confinement::Landlock => confine::enclose(),
        Confinement::Unconfined => Ok(()),
    };
    let started = enclosed.and_then(|()| started(order, workspace, output, &spared));
    let is_enclosed = host.is_some_and(Outsider::is_out_of_reach);
    // Raise the priority for the final kill. Best effort: only root may.
    let _ = setpriority_process(None, FIRST);
    if tell.send(started).is_err() {
        return;
    }
    for done in asked {
        if is_enclosed {
            // The process ID -1 addresses all processes that this thread may signal: those of the
            // command. The kernel excludes the calling process itself.
            let _ = kill_process_group(Pid::INIT, Signal::KILL);
        }
        let _ = done.send(());
    }
}

fn started(order: &Order, workspace: &OwnedFd, output: OwnedFd, spared: &[i32]) -> Outcome {
    let output = [output.try_clone()?.into(), output.into()];
    let site =
        Site { workspace: workspace.as_fd(), directory: None, spared, kernel: Kernel::Running };
    launch::launch(order, site, output)
}

/// A process outside of the command that this thread could signal before it was confined: the host.
#[derive(Clone, Copy)]
struct Outsider(Pid);

impl Outsider {
    fn look() -> Option<Self> {
        getppid().filter(|host| test_kill_process(*host).is_ok()).map(Self)
    }

    /// Returns true if Landlock, and no other rule, keeps the signals of this thread from the host.
    fn is_out_of_reach(self) -> bool {
        test_kill_process(self.0) == Err(Errno::PERM) && getppid() == Some(self.0)
    }
}
