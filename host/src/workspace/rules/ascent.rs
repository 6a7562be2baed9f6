//! From a directory up to its workspace, by asking the system and not by any name: names may have changed since they were walked.

use super::Forbidden;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use crate::workspace::QUIETLY;
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How many directories are passed at most. No path has as many components.
const MAX_STEPS: u32 = 4_096;

/// A file or directory, whatever leads to it. No other gets the same while this one is held open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    // Systems differ in how wide these are and whether they have a sign.
    device: i128,
    inode: i128,
}

impl Identity {
    /// Of what is open.
    pub(crate) fn of(handle: impl AsFd) -> io::Result<Self> {
        Ok(Self::from_stat(&fstat(handle)?))
    }

    pub(crate) fn from_stat(stat: &Stat) -> Self {
        Self { device: i128::from(stat.st_dev), inode: i128::from(stat.st_ino) }
    }

    /// Of what stands under a name, the link itself where it is one.
    pub(super) fn at(dir: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Option<Self> {
        statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| Self::from_stat(&stat))
    }
}

/// How anything is opened in order to look at it and no more. `PATH` needs no permission to read it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const PIN_ANY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const PIN_ANY: OFlags = OFlags::RDONLY.union(QUIETLY);

/// How a directory is opened in order to go on from there.
pub(crate) const PIN: OFlags = PIN_ANY.union(OFlags::DIRECTORY);

/// Shows `visit` each directory from `dir` on, itself first, with the one above it, until the workspace is reached; that one is not shown.
///
/// # Errors
///
/// What `visit` says; [`Forbidden::Outside`] where the way up does not lead to the workspace.
pub(super) fn ascend(
    dir: BorrowedFd<'_>,
    root: Identity,
    mut visit: impl FnMut(Identity, BorrowedFd<'_>) -> Result<(), Forbidden>,
) -> Result<(), Forbidden> {
    let mut held: Option<OwnedFd> = None;
    let mut here = Identity::of(dir)?;
    for _ in 0..MAX_STEPS {
        if here == root {
            return Ok(());
        }
        let from = held.as_ref().map_or(dir, AsFd::as_fd);
        let above = openat(from, "..", PIN, Mode::empty()).map_err(io::Error::from)?;
        visit(here, above.as_fd())?;
        let next = Identity::of(&above)?;
        if next == here {
            break;
        }
        (held, here) = (Some(above), next);
    }
    Err(Forbidden::Outside)
}
