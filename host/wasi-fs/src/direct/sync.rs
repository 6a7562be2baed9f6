//! Flushes files and directories to the disk.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, fsync, openat};

use super::node::Node;
use crate::Access;
use crate::errors::{Fault, Refusal};
use crate::inspect::READ_DIRECTORY;
use crate::path::HERE;

/// The extent of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The contents, and the metadata needed to retrieve them.
    Data,
    /// All metadata as well.
    All,
}

/// Waits until the guest's own changes are on the disk. Skips files without any: a guest that only
/// reads must not be able to make the host wait for writes of other programs.
pub(super) fn sync(node: &Node, access: Access, what: What) -> Result<(), Fault> {
    match node {
        Node::File(file) if file.is_changed() => match what {
            What::Data => sync_data(file.as_file().as_fd()),
            What::All => Ok(fsync(file.as_file())?),
        },
        Node::File(_) => Ok(()),
        Node::Dir(dir) => match access {
            Access::ReadOnly => Ok(()),
            // The mount's own handle may be `O_PATH`, which `fsync` rejects.
            Access::ReadWrite => {
                Ok(fsync(openat(dir.handle(), HERE, READ_DIRECTORY, Mode::empty())?)?)
            }
        },
        Node::Unmounted => Err(Refusal::Unmounted.into()),
    }
}

#[cfg(not(target_vendor = "apple"))]
fn sync_data(handle: BorrowedFd<'_>) -> Result<(), Fault> {
    Ok(rustix::fs::fdatasync(handle)?)
}

/// Falls back to `fsync`: Apple systems have no `fdatasync`.
#[cfg(target_vendor = "apple")]
fn sync_data(handle: BorrowedFd<'_>) -> Result<(), Fault> {
    Ok(fsync(handle)?)
}
