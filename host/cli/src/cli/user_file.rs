//! Changes of the user's own files: under a lock, as a whole, and through the user's links.

use palisade::internal::{FormerPermissions, PRIVATE_PREFIX, take_permissions};
use rustix::fs::RawMode;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest wait for the lock of a file. Another run holds it for the time of one write.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(20);

/// Returns a function that waits between two attempts, until the time is over.
pub(super) fn patient() -> impl FnMut() -> Patience {
    let until = Instant::now() + PATIENCE;
    move || {
        std::thread::sleep(PAUSE);
        if Instant::now() < until { Patience::Left } else { Patience::Over }
    }
}

/// Whether there is time left to wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Left,
    Over,
}

/// Takes the lock of a file that processes lock in turn, as long as there is time.
pub(super) fn take(turn: &File, mut wait: impl FnMut() -> Patience) -> io::Result<Patience> {
    use rustix::fs::{FlockOperation, flock};
    loop {
        match flock(turn, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Patience::Left),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if wait() == Patience::Over {
            return Ok(Patience::Over);
        }
    }
}

/// Returns the file that a path leads to, through the user's own symbolic links. It need not exist.
pub(super) fn target(file: &Path) -> Option<PathBuf> {
    if let Ok(found) = file.canonicalize() {
        return Some(found);
    }
    // A link that leads nowhere has a target that is not known.
    if file.symlink_metadata().is_ok() {
        return None;
    }
    let mut missing = vec![file.file_name()?];
    let mut folder = file.parent()?;
    loop {
        if let Ok(found) = folder.canonicalize() {
            return Some(missing.iter().rev().fold(found, |path, name| path.join(name)));
        }
        missing.push(folder.file_name()?);
        folder = folder.parent()?;
    }
}

/// Creates the folder of the file, for this user only.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Replaces a file atomically, and keeps its permissions and access list. The next version has a
/// private name until then, so that no tool of another run can change or read it.
pub(super) fn replace(target: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let folder = target.parent().unwrap_or(Path::new("/"));
    let mut fresh = tempfile::Builder::new().prefix(PRIVATE_PREFIX).tempfile_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    if let (Ok(former), Some(name)) = (target.metadata(), target.file_name()) {
        let former = FormerPermissions { mode: former.mode() as RawMode, group: former.gid() };
        let at = File::open(folder)?;
        take_permissions(fresh.as_file().as_fd(), former, (at.as_fd(), name))?;
    }
    fresh.as_file().sync_all()?;
    fresh.persist(target).map(drop).map_err(|error| error.error)
}
