//! The processes of one command: started in a group of their own, and never signalled once the group's number could be another's.

use super::confine::{self, Confined, Kernel};
use super::{Confinement, surroundings};
use crate::tool::{ErrorKind, ExecutionKind, Limit};
use crate::workspace::Workspace;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use tempfile::TempDir;
use tokio::sync::oneshot;

/// The stack of the threads here, in bytes: they do little, and nothing deep.
const STACK: usize = 256 << 10;

/// What is to be run, and where.
pub(super) struct Order {
    pub(super) command: String,
    pub(super) workspace: Arc<Workspace>,
    pub(super) confinement: Confinement,
    pub(super) kernel: Kernel,
}

/// How a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Exited(i32),
    Killed(i32),
    /// Somebody else in this process took its status, or the kernel does not let go of it.
    Unknown,
}

/// A command that runs.
pub(super) struct Started {
    pub(super) group: Group,
    pub(super) confined: Confined,
    pub(super) ended: oneshot::Receiver<End>,
    /// Completes when the shell is reaped and its private directory removed, after the group has been dropped.
    pub(super) tidied: oneshot::Receiver<()>,
    output: Option<ChildStdout>,
}

impl Started {
    /// The reading end of what the command writes; once.
    pub(super) fn take_output(&mut self) -> Result<ChildStdout, ErrorKind> {
        self.output.take().ok_or_else(|| ErrorKind::internal("the output of a command was taken twice"))
    }
}

/// The process group of a command, which is killed when this is dropped.
///
/// Its number is the shell's process id. The shell is not reaped as long as this lives: a zombie keeps its id, and with it the group's, from being given to
/// anybody else. So whatever is signalled here belongs to the command.
pub(super) struct Group {
    leader: Pid,
    /// Set where the shell was reaped behind our back (the program ignores SIGCHLD, or waits for any child): its number may be another's from then on.
    lost: Arc<AtomicBool>,
    /// Dropped last, which lets the attending thread reap.
    _release: mpsc::Sender<Infallible>,
}

impl Group {
    /// Sends a signal to every process of the group.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.lost.load(Ordering::SeqCst) {
            // Whoever has ended by now needs none.
            let _ = kill_process_group(self.leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Starts a command on a thread of its own, which then attends to it: no runtime has to be alive for its end.
///
/// # Errors
///
/// Where there is no thread to be had; what else goes wrong comes through the receiver.
pub(super) fn start(order: Order) -> Result<oneshot::Receiver<Result<Started, ErrorKind>>, ErrorKind> {
    let (sender, receiver) = oneshot::channel();
    let starting = Starting::one_more()?;
    let attend = move || {
        let launched = launch(&order);
        drop(starting);
        match launched {
            Ok(launched) => attend(launched, sender),
            // Nobody waits any more: then nobody wants to know.
            Err(error) => drop(sender.send(Err(error))),
        }
    };
    thread::Builder::new().name("palisade-shell".to_owned()).stack_size(STACK).spawn(attend)?;
    Ok(receiver)
}

/// Commands that are being started at once. Each has two threads, which stay where the workspace hangs in the kernel.
const STARTING: usize = 64;

/// A command that is being started.
struct Starting;

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
    home: TempDir,
}

/// What the system refuses here is no fault of the command, and may name paths of the host: it goes to the log only.
fn launch(order: &Order) -> Result<Launched, ErrorKind> {
    let home = surroundings::home(order.workspace.root())?;
    // One pipe for both streams: what is read has the order in which it was written.
    let (reader, writer) = std::io::pipe()?;
    let mut command = surroundings::shell(&order.command, order.confinement)?;
    command
        .current_dir(surroundings::directory(&order.workspace))
        .env_clear()
        .envs(surroundings::environment(home.path()))
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let (child, confined) = spawn(&mut command, order, &home)?;
    // The host's own writing ends: as long as they are open the output has no end.
    drop(command);
    Ok(Launched { child, output: OwnedFd::from(reader).into(), confined, home })
}

/// Confines a thread that is thrown away, and starts the shell from it: a restriction cannot be lifted, and is inherited by what a restricted thread starts.
/// The host's other threads stay as they are.
fn spawn(command: &mut Command, order: &Order, home: &TempDir) -> Result<(Child, Confined), ErrorKind> {
    if order.confinement == Confinement::Unconfined {
        return Ok((started(command)?, Confined::UNCONFINED));
    }
    thread::scope(|scope| {
        let confined = move || {
            let confined = confine::this_thread(&order.workspace, home.path(), order.kernel)?;
            Ok((started(command)?, confined))
        };
        let thread = thread::Builder::new().name("palisade-confined".to_owned()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, confined)?;
        thread.join().unwrap_or_else(|_| Err(ErrorKind::internal("the thread that confines it panicked")))
    })
}

fn started(command: &mut Command) -> Result<Child, ErrorKind> {
    command
        .spawn()
        .map_err(|error| ErrorKind::execution(ExecutionKind::Failed, format!("cannot start /bin/sh: {error}")))
}

/// Hands the command over, waits for its end and tells it, and reaps the shell when its group is no longer needed.
fn attend(launched: Launched, sender: oneshot::Sender<Result<Started, ErrorKind>>) {
    let Launched { mut child, output, confined, home } = launched;
    let leader = Pid::from_child(&child);
    let lost = Arc::new(AtomicBool::new(false));
    let (release, released) = mpsc::channel();
    let (tell, ended) = oneshot::channel();
    let (tidy, tidied) = oneshot::channel();
    let group = Group { leader, lost: lost.clone(), _release: release };
    // Where the call has been dropped meanwhile, so is the group, which kills it.
    drop(sender.send(Ok(Started { group, confined, ended, tidied, output: Some(output) })));
    let end = wait(leader);
    lost.store(end == End::Unknown, Ordering::SeqCst);
    // Neither matters to a call that has been dropped.
    let _ = tell.send(end);
    let _ = released.recv();
    let _ = child.wait();
    tidy_up(home);
    let _ = tidy.send(());
}

/// Waits for the end without reaping.
fn wait(leader: Pid) -> End {
    loop {
        match waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                let killed = status.terminating_signal().map(End::Killed);
                return status.exit_status().map(End::Exited).or(killed).unwrap_or(End::Unknown);
            }
            Err(rustix::io::Errno::INTR) | Ok(None) => {}
            Err(_) => return End::Unknown,
        }
    }
}

/// Removes the private directory with whatever the command left in it.
///
/// An empty one goes at once. Of anything else a child takes care: a tree of any depth must not exhaust a stack or the descriptors of the host, and
/// directories that forbid writing have to be allowed it first.
fn tidy_up(home: TempDir) {
    const REMOVE: &str = "rm -rf -- \"$1\" || { chmod -R u+rwx -- \"$1\"; rm -rf -- \"$1\"; }";
    let path = home.keep();
    if std::fs::remove_dir(&path).is_ok() {
        return;
    }
    let mut remove = Command::new("/bin/sh");
    remove.args(["-c", REMOVE, "sh"]).arg(&path).env_clear().env("PATH", surroundings::PATH);
    let removed = remove.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !removed.is_ok_and(|status| status.success()) {
        tracing::warn!("the private directory `{}` of a command could not be removed", path.display());
    }
}
