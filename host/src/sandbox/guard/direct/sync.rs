//! Writing through to the disk.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, fsync, openat};

use super::node::Node;
use crate::sandbox::guard::Access;
use crate::sandbox::guard::errors::Fault;
use crate::sandbox::guard::path::HERE;
use crate::workspace::READ_DIRECTORY;

/// How much has to be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The contents, and what is needed to find them.
    Data,
    /// The metadata, too.
    All,
}

/// Waits until a guest's own changes are on the disk. Where it has made none there is nothing to wait for: a guest that only reads must not be able
/// to make the host wait for what other programs write.
pub(super) fn sync(node: &Node, access: Access, what: What) -> Result<(), Fault> {
    match node {
        Node::File(file) if file.is_changed() => match what {
            What::Data => sync_data(file.as_file().as_fd()),
            What::All => Ok(fsync(file.as_file())?),
        },
        Node::Dir(dir) if access == Access::ReadWrite => {
            // The mount's own handle may be good for resolving names only.
            Ok(fsync(openat(dir.handle(), HERE, READ_DIRECTORY, Mode::empty())?)?)
        }
        Node::File(_) | Node::Dir(_) => Ok(()),
    }
}

#[cfg(not(target_vendor = "apple"))]
fn sync_data(handle: BorrowedFd<'_>) -> Result<(), Fault> {
    Ok(rustix::fs::fdatasync(handle)?)
}

/// There is no `fdatasync` here.
#[cfg(target_vendor = "apple")]
fn sync_data(handle: BorrowedFd<'_>) -> Result<(), Fault> {
    Ok(fsync(handle)?)
}
