//! The processes of one command: started and attended to by a separate thread, and signalled only
//! while their process ID is valid.
//!
//! The thread waits for the shell without reaping it, so that the ID of its process group cannot be
//! reused while the group may still be signalled. No runtime is needed to end a command.

mod direct;
mod running;
mod streams;

pub(crate) use running::{ExceededLimit, ExitStatus, RunningCommand};
#[cfg(target_os = "linux")]
pub(crate) use running::{ExitNotifier, KillHandle};
#[cfg(target_os = "linux")]
pub(crate) use streams::CommandStreams;
pub(crate) use streams::{HostStreams, Streams};

use crate::confine::Kernel;
use crate::launch::LaunchRequest;
use crate::{Confinement, Network, ShellHelper, ShellLimits, environment};
use palisade::workspace::Workspace;
use palisade::{ErrorKind, Limit};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, thread};
use tokio::sync::oneshot;

#[cfg(target_os = "linux")]
use crate::helper;

/// The stack size of these threads, in bytes: they do little work, without recursion.
pub(crate) const STACK: usize = 256 << 10;

/// The sender of the outcome of a start.
pub(crate) type StartSender = oneshot::Sender<Result<RunningCommand, ErrorKind>>;

/// A command and everything that is needed to start it.
pub(crate) struct CommandSpec {
    pub(crate) command: String,
    pub(crate) confinement: Confinement,
    pub(crate) network: Network,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) kernel: Kernel,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no helper"))]
    pub(crate) helper: Option<Arc<ShellHelper>>,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only a helper counts"))]
    pub(crate) limits: ShellLimits,
    pub(crate) streams: Streams,
    /// Further variables of its environment.
    pub(crate) variables: Vec<(String, String)>,
    /// Further files and directories that it may read and execute, if it is confined.
    pub(crate) readable: Vec<PathBuf>,
}

impl CommandSpec {
    /// Returns the request, with a new home directory that the caller has to remove.
    fn launch_request(&self) -> io::Result<LaunchRequest> {
        Ok(LaunchRequest {
            command: self.command.clone(),
            home: environment::create_home(self.workspace.root())?.keep(),
            time_zone: environment::time_zone(),
            confinement: self.confinement,
            network: self.network,
            streams: self.streams,
            variables: self.variables.clone(),
            readable: self.readable.clone(),
        })
    }
}

/// Starts a command on a separate thread, which then attends to it, so that its end does not depend
/// on a runtime.
///
/// # Errors
///
/// If the thread cannot be started. All other errors arrive through the receiver.
pub(crate) fn start(
    spec: CommandSpec,
) -> Result<oneshot::Receiver<Result<RunningCommand, ErrorKind>>, ErrorKind> {
    let (sender, receiver) = oneshot::channel();
    let permit = StartPermit::acquire()?;
    let run = move || match spec.launch_request() {
        Ok(request) => supervise(&spec, &request, permit, sender),
        // The send fails if the call was dropped.
        Err(error) => drop(sender.send(Err(error.into()))),
    };
    thread::Builder::new()
        .name("palisade-shell".to_owned())
        .stack_size(STACK)
        .spawn(run)
        .map_err(ErrorKind::no_thread)?;
    Ok(receiver)
}

/// Starts the command, attends to it, and removes its home directory.
fn supervise(
    spec: &CommandSpec,
    request: &LaunchRequest,
    permit: StartPermit,
    sender: StartSender,
) {
    #[cfg(target_os = "linux")]
    if let Some(program) = &spec.helper {
        return match helper::launch(spec, request, program, || sender.is_closed()) {
            Ok(supervised) => {
                drop(permit);
                helper::attend(supervised, &request.home, sender);
            }
            Err(error) => {
                environment::remove_home(&request.home);
                drop(sender.send(Err(error)));
            }
        };
    }
    match direct::launch(spec, request) {
        Ok(launched) => {
            drop(permit);
            direct::attend(launched, &request.home, sender);
        }
        Err(error) => {
            environment::remove_home(&request.home);
            drop(sender.send(Err(error.into())));
        }
    }
}

/// Maximum number of commands that are being started. Each uses two threads, which block if the
/// workspace hangs in the kernel.
const MAX_STARTING: usize = 64;

/// The slot of a command that is being started.
struct StartPermit;

impl StartPermit {
    fn count() -> &'static AtomicUsize {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        &COUNT
    }

    fn acquire() -> Result<Self, ErrorKind> {
        if Self::count().fetch_add(1, Ordering::Relaxed) >= MAX_STARTING {
            Self::count().fetch_sub(1, Ordering::Relaxed);
            return Err(ErrorKind::ResourceExhausted {
                limit: Limit::LostThreads,
                value: MAX_STARTING as u64,
            });
        }
        Ok(Self)
    }
}

impl Drop for StartPermit {
    fn drop(&mut self) {
        Self::count().fetch_sub(1, Ordering::Relaxed);
    }
}
