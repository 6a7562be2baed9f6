//! Walks from a directory up to its workspace through `..` handles, since names may have changed
//! after they were resolved.

use super::Forbidden;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use crate::inspect::QUIETLY;
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The maximum number of directories walked. No path has as many components.
const MAX_STEPS: u32 = 4_096;

/// The identity of a file or directory, independent of its path. It is unique while the file is
/// held open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    // Wide enough for the field types of every system, which differ in width and sign.
    device: i128,
    inode: i128,
}

impl Identity {
    /// Returns the identity of an open file.
    pub fn from_handle(handle: impl AsFd) -> io::Result<Self> {
        Ok(Self::from_stat(&fstat(handle)?))
    }

    /// Returns the identity of a file with this metadata.
    pub fn from_stat(stat: &Stat) -> Self {
        Self { device: i128::from(stat.st_dev), inode: i128::from(stat.st_ino) }
    }

    /// Returns the identity of the file at a path; of a link, its own.
    pub(super) fn of_path(path: &std::path::Path) -> Option<Self> {
        rustix::fs::lstat(path).ok().map(|stat| Self::from_stat(&stat))
    }

    /// Returns the identity of the entry under a name; of a link, its own.
    pub(super) fn at(dir: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Option<Self> {
        statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| Self::from_stat(&stat))
    }
}

/// The flags to open a file of any type without side effects. `PATH` needs no read permission.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub const PIN_ANY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub const PIN_ANY: OFlags = OFlags::RDONLY.union(QUIETLY);

/// The flags to open a directory as the base of further look-ups.
pub const PIN: OFlags = PIN_ANY.union(OFlags::DIRECTORY);

/// Calls `visit` with each directory from `dir` up to the workspace, together with its parent. The
/// workspace itself is not visited.
///
/// # Errors
///
/// The errors of `visit`; [`Forbidden::Outside`] if the walk does not reach the workspace.
pub(super) fn ascend(
    dir: BorrowedFd<'_>,
    root: Identity,
    mut visit: impl FnMut(Identity, BorrowedFd<'_>) -> Result<(), Forbidden>,
) -> Result<(), Forbidden> {
    let mut held: Option<OwnedFd> = None;
    let mut here = Identity::from_handle(dir)?;
    for _ in 0..MAX_STEPS {
        if here == root {
            return Ok(());
        }
        let from = held.as_ref().map_or(dir, AsFd::as_fd);
        let above = openat(from, "..", PIN, Mode::empty()).map_err(io::Error::from)?;
        visit(here, above.as_fd())?;
        let next = Identity::from_handle(&above)?;
        if next == here {
            break;
        }
        held = Some(above);
        here = next;
    }
    Err(Forbidden::Outside)
}
