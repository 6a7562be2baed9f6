//! Repositories without a directory called `.git`: git takes every directory for one in which it finds `HEAD` beside the names that
//! a repository has, and runs what the settings there name. None is made by a tool, and none that is there is changed.

use super::names::Part;
use super::{Forbidden, Rules};
use crate::workspace::READ_DIRECTORY;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, flock, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long another call, of this process or of another, is waited for that puts such a name into the same directory. It holds the
/// lock for as long as a directory is read.
const PATIENCE: Duration = Duration::from_millis(250);

/// How many entries a directory may have in which such a name is looked for: reading so many takes some 10 ms, in which nothing
/// can interrupt the host.
const MAX_ENTRIES: usize = 20_000;

/// Leave to put one more name into a directory, to be kept until that has been done.
#[must_use]
pub(crate) struct Admission {
    _lock: Option<OwnedFd>,
}

impl Rules {
    /// Refuses a new name that would stand beside one with which it makes a repository. Of two calls that put one of the two there
    /// at the same time, the second waits: the directory itself is locked. For all other names this costs nothing.
    pub(crate) fn admit(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<Admission, Forbidden> {
        let Some(part) = Part::of(&name.to_string_lossy()) else { return Ok(Admission { _lock: None }) };
        let lock = locked(dir)?;
        match neighbour(&lock, name, part)? {
            None => Ok(Admission { _lock: Some(lock) }),
            Some(beside) => Err(Forbidden::Repository { name: name.to_string_lossy().as_ref().into(), beside }),
        }
    }
}

/// The directory, opened for reading and locked. The lock ends with the handle, also when the process is killed.
fn locked(dir: BorrowedFd<'_>) -> Result<OwnedFd, Forbidden> {
    let own = openat(dir, ".", READ_DIRECTORY, Mode::empty()).map_err(io::Error::from)?;
    let begun = Instant::now();
    loop {
        match flock(&own, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(own),
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
    }
}

/// The name in a directory that makes a repository together with this one, unless this one is there already.
fn neighbour(dir: &OwnedFd, name: &OsStr, part: Part) -> Result<Option<Box<str>>, Forbidden> {
    let mut met = None;
    for (count, entry) in Dir::read_from(dir).map_err(io::Error::from)?.enumerate() {
        let entry = entry.map_err(io::Error::from)?;
        let found = entry.file_name().to_bytes();
        if found == name.as_encoded_bytes() {
            return Ok(None);
        }
        if count >= MAX_ENTRIES {
            let why =
                format!("a directory with more than {MAX_ENTRIES} entries is given no name that a repository has");
            return Err(io::Error::other(why).into());
        }
        let found = String::from_utf8_lossy(found);
        if Part::of(&found).is_some_and(|other| part.meets(other)) {
            met = Some(found.into_owned().into());
        }
    }
    Ok(met)
}

/// Whether git would take this directory for a repository, by the names in it.
pub(super) fn is_bare(dir: impl AsFd) -> bool {
    let dir = dir.as_fd();
    let has = |name: &str| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}
