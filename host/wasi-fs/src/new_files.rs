//! The files that a call has created lately. They are known by their inodes, since another file can
//! come to stand at the path of one. The system gives the number of a removed file to another one,
//! which has another time of birth.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{RawMode, Stat, fstat};

use crate::protected_paths::Identity;

/// The number of files that are remembered: a guest that replaces a file renames the new one soon
/// after it has created it.
const REMEMBERED: usize = 64;

/// A file that a call has created, and that has no final name yet.
#[derive(Debug, Clone)]
pub(super) struct NewFile {
    identity: Identity,
    born: Option<Birth>,
    /// The permissions of any new file in its directory.
    pub(super) default: RawMode,
}

/// The time of birth, in seconds and nanoseconds, on file systems that keep it.
type Birth = (i64, u32);

impl NewFile {
    pub(super) fn new(file: impl AsFd, default: RawMode) -> rustix::io::Result<Self> {
        let identity = Identity::from_stat(&fstat(&file)?);
        Ok(Self { identity, born: birth((file.as_fd(), "")), default })
    }

    /// Returns true if an entry of this state is the file. An empty name stands for the handle.
    pub(super) fn is(&self, entry: (BorrowedFd<'_>, &str), stat: &Stat) -> bool {
        self.identity == Identity::from_stat(stat) && self.born == birth(entry)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn birth((dir, name): (BorrowedFd<'_>, &str)) -> Option<Birth> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    let found = statx(dir, name, flags, StatxFlags::BTIME).ok()?;
    let has_it = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    has_it.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn birth(_: (BorrowedFd<'_>, &str)) -> Option<Birth> {
    None
}

/// The last files that a call has created.
#[derive(Debug, Default)]
pub(super) struct NewFiles(VecDeque<NewFile>);

impl NewFiles {
    pub(super) fn add(&mut self, file: NewFile) {
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(file);
    }

    /// Returns the file with this identity, if the call has created one lately.
    pub(super) fn find(&self, stat: &Stat) -> Option<NewFile> {
        let identity = Identity::from_stat(stat);
        self.0.iter().rev().find(|file| file.identity == identity).cloned()
    }

    /// Forgets a file that has been removed, or that has its final name.
    pub(super) fn forget(&mut self, stat: &Stat) {
        let identity = Identity::from_stat(stat);
        self.0.retain(|file| file.identity != identity);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
