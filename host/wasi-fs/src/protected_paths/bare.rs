//! Protects git repositories without a `.git` directory, and prevents their creation: git takes
//! every directory with `HEAD` and certain other names for a repository, and executes its settings.

use super::ancestors::{Identity, PIN};
use super::names::{GIT, Part, is_protected};
use super::{Forbidden, ProtectedPaths};
use crate::inspect::READ_DIRECTORY;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, flock, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The maximum wait for the lock of another call, in this process or another one. The holder keeps
/// it while it reads a directory and creates one entry.
const PATIENCE: Duration = Duration::from_millis(250);

/// The maximum number of entries in a directory that is searched for such names. Reading this many
/// takes some 10 ms, during which the host cannot be interrupted.
const MAX_ENTRIES: usize = 20_000;

/// The permission to create one name in a directory. It holds the directory's lock until the entry
/// is created.
#[must_use]
#[derive(Debug)]
pub struct Admission {
    _lock: Option<OwnedFd>,
}

impl ProtectedPaths {
    /// Refuses a new name that forms a git repository together with an existing one. Locks the
    /// directory, so that concurrent calls cannot create both names. Other names need no lock.
    #[doc(hidden)]
    pub fn admit(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<Admission, Forbidden> {
        let Some(part) = Part::from_name(&name.to_string_lossy()) else {
            return Ok(Admission { _lock: None });
        };
        let lock = locked(dir)?;
        match neighbour(&lock, name, part)? {
            None => Ok(Admission { _lock: Some(lock) }),
            Some(beside) => {
                Err(Forbidden::Repository { name: name.to_string_lossy().as_ref().into(), beside })
            }
        }
    }
}

/// Opens a directory for reading and locks it. The lock ends with the handle, also if the process
/// is killed.
fn locked(dir: BorrowedFd<'_>) -> Result<OwnedFd, Forbidden> {
    let own = openat(dir, ".", READ_DIRECTORY, Mode::empty()).map_err(io::Error::from)?;
    let begun = Instant::now();
    loop {
        // Polls, since a blocking `flock` has no timeout.
        match flock(&own, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(own),
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
    }
}

/// Returns the existing name that forms a repository together with the new one. Returns none if the
/// new name exists already.
fn neighbour(dir: &OwnedFd, name: &OsStr, part: Part) -> Result<Option<Box<str>>, Forbidden> {
    let mut met = None;
    for (count, entry) in Dir::read_from(dir).map_err(io::Error::from)?.enumerate() {
        let entry = entry.map_err(io::Error::from)?;
        let found = entry.file_name().to_bytes();
        if found == name.as_encoded_bytes() {
            return Ok(None);
        }
        if count >= MAX_ENTRIES {
            return Err(Forbidden::Crowded { entries: MAX_ENTRIES });
        }
        let found = String::from_utf8_lossy(found);
        if Part::from_name(&found).is_some_and(|other| part.meets(other)) {
            met = Some(found.into_owned().into());
        }
    }
    Ok(met)
}

/// The directories of a repository whose files git reads or executes. A `.git` in them makes no
/// working tree.
const PARTS: [&str; 7] = ["hooks", "info", "logs", "modules", "objects", "refs", "worktrees"];

/// Returns whether a directory is one of those of the repository around it.
pub(super) fn is_part(repository: BorrowedFd<'_>, dir: Identity) -> bool {
    PARTS.iter().any(|name| Identity::at(repository, *name) == Some(dir))
}

/// Returns whether a file or directory lies in a git repository, by the directories on its path,
/// and not in a working tree there. A directory is not in the bare repository that it is.
pub(super) fn lies_in_repository(path: &Path) -> bool {
    let mut in_work_tree = false;
    let mut below = None;
    path.ancestors().any(|path| {
        let Ok(dir) = rustix::fs::open(path, PIN, Mode::empty()) else {
            below = Identity::of_path(path);
            return false;
        };
        let is_named = path.file_name().is_some_and(|name| is_protected(&name.to_string_lossy()));
        let is_repository = is_named || (below.is_some() && is_bare(&dir));
        let is_part = || below.is_some_and(|below| is_part(dir.as_fd(), below));
        let lies_in = is_repository && (!in_work_tree || is_part());
        in_work_tree |= Identity::at(dir.as_fd(), GIT).is_some();
        below = Identity::from_handle(&dir).ok();
        lies_in
    })
}

/// Returns whether git would take this directory for a repository, by its entries.
pub(super) fn is_bare(dir: impl AsFd) -> bool {
    let dir = dir.as_fd();
    let has = |name: &str| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}
