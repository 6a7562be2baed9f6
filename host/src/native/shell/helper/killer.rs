//! The thread that has the shell started. Its signals reach the command and nothing else, and it stays, to end the whole
//! command at once.
//!
//! The command lies in a Landlock domain within that of this thread, so that no signal of the command reaches this thread:
//! a signal to one thread ends or stops the whole helper.

use super::census;
use super::reaper::FIRST;
use crate::native::shell::confine::{self, Confined, Kernel};
use crate::native::shell::launch::{self, Order, Site};
use crate::native::shell::options::Confinement;
use crate::native::shell::process::STACK;
use crate::native::shell::unfit::Unfit;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getppid, kill_process_group, setpriority_process, test_kill_process};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// The thread. Its end of the command can only be asked for, since what encloses it holds for no other thread.
pub(super) struct Killer {
    ask: Sender<Sender<()>>,
}

impl Killer {
    /// Sends SIGKILL to all processes of the command in one step of the kernel, which no process can outrun by forking.
    /// Does nothing where the kernel would not keep the signal within the command.
    pub(super) fn kill(&self) {
        let (done, over) = channel();
        if self.ask.send(done).is_ok() {
            let _ = over.recv();
        }
    }
}

/// Has the shell started by a thread whose signals are kept in for good.
pub(super) fn start(order: Order, workspace: OwnedFd, output: OwnedFd) -> Result<(Child, Confined, Killer), Unfit> {
    let (ask, asked) = channel();
    let (tell, told) = channel();
    let enclosed = move || serve(&order, &workspace, output, &tell, &asked);
    thread::Builder::new().name("palisade-killer".to_owned()).stack_size(STACK).spawn(enclosed)?;
    let gone = |_| Unfit::Failed("the thread that has it started panicked".to_owned());
    let (child, confined) = told.recv().map_err(gone)??;
    Ok((child, confined, Killer { ask }))
}

type Outcome = Result<(Child, Confined), Unfit>;

fn serve(order: &Order, workspace: &OwnedFd, output: OwnedFd, tell: &Sender<Outcome>, asked: &Receiver<Sender<()>>) {
    // The number of this thread is among them.
    let spared = census::threads();
    let host = Outsider::look();
    let enclosed = match order.confinement {
        Confinement::Landlock => confine::enclose(),
        Confinement::Unconfined => Ok(()),
    };
    let started = enclosed.and_then(|()| started(order, workspace, output, &spared));
    let is_enclosed = host.is_some_and(Outsider::is_out_of_reach);
    // From here on it is to be quick. Only root is allowed this.
    let _ = setpriority_process(None, FIRST);
    if tell.send(started).is_err() {
        return;
    }
    for done in asked {
        if is_enclosed {
            // The number 1 stands for all processes that the signal may be sent to. They are those of the command: this
            // process itself is never among them.
            let _ = kill_process_group(Pid::INIT, Signal::KILL);
        }
        let _ = done.send(());
    }
}

fn started(order: &Order, workspace: &OwnedFd, output: OwnedFd, spared: &[i32]) -> Outcome {
    let output = [output.try_clone()?.into(), output.into()];
    let site = Site { workspace: workspace.as_fd(), directory: None, spared, kernel: Kernel::Running };
    launch::launch(order, site, output)
}

/// A process outside of the command that this thread could signal before it was enclosed: the host.
#[derive(Clone, Copy)]
struct Outsider(Pid);

impl Outsider {
    fn look() -> Option<Self> {
        getppid().filter(|host| test_kill_process(*host).is_ok()).map(Self)
    }

    /// Whether Landlock, and nothing else, keeps signals of this thread from it.
    fn is_out_of_reach(self) -> bool {
        test_kill_process(self.0) == Err(Errno::PERM) && getppid() == Some(self.0)
    }
}
