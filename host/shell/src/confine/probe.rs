//! Finds out whether the running kernel can confine a command.

use super::{Bounds, Kernel, confine_this_thread};
use crate::{Network, environment};
use palisade::ErrorKind;
use palisade::workspace::Workspace;
use std::os::fd::AsFd as _;
use std::sync::Arc;

/// Returns the Landlock ABI version that confines commands on this system.
///
/// # Errors
///
/// `permission_denied` if Landlock is missing or too old: the error that a command would get.
pub fn landlock_abi(workspace: &Arc<Workspace>) -> Result<u32, ErrorKind> {
    let workspace = workspace.clone();
    // Removed by this thread: a confined thread may delete the content of its home directory, but
    // not the directory itself.
    let home = environment::create_home(workspace.root())?;
    let path = home.path().to_owned();
    // A separate thread, because a confinement cannot be lifted.
    let probe = move || {
        let bounds = Bounds {
            workspace: workspace.dir().as_fd(),
            home: &path,
            readable: &[],
            network: Network::Closed,
            protected_threads: &[],
        };
        confine_this_thread(bounds, Kernel::Running)
    };
    let thread = std::thread::Builder::new().name("palisade-probe".to_owned()).spawn(probe);
    let thread = thread
        .map_err(|error| ErrorKind::internal(format!("no thread to look for Landlock: {error}")))?;
    let confined = thread
        .join()
        .map_err(|_| ErrorKind::internal("the thread that looked for Landlock ended"))?;
    Ok(confined?.abi().unwrap_or_default())
}
