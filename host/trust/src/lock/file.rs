//! The file of a lock: read with bounds, and replaced in one step.

use super::Lock;
use palisade::internal::{PRIVATE_PREFIX, open_deciding_file, open_regular, open_turn_file};
use palisade::workspace::LastLink;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The largest lock, in bytes: some ten thousand plugins.
const MAX_FILE: u64 = 8 << 20;
/// The longest wait for another process that writes the lock.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Whose lock a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockOf {
    /// The user, whose lock decides. Other users must not be able to change it.
    User,
    /// A project, whose lock only tightens. Its text is not trusted, and a link in its place is not
    /// followed.
    Project,
}

/// The reason why a lock cannot be used. It is never taken for an empty one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The file cannot be read or written.
    #[error("cannot use the lock `{}`: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another user could change the file.
    #[error("cannot use the lock `{}`: {reason}", path.display())]
    Unsafe {
        /// The path of the file.
        path: PathBuf,
        /// The problem, with the remedy.
        reason: String,
    },
    /// The text is no lock.
    #[error(
        "`{}` is no lock of plugins; restore it from a copy, or remove it and approve the plugins again: {reason}",
        path.display()
    )]
    Invalid {
        /// The path of the file.
        path: PathBuf,
        /// The problem, with the place.
        reason: String,
    },
    /// The plugin was revoked between the look at it and its approval.
    #[error("the plugin was revoked while it was looked at; look at it again")]
    Revoked,
    /// Another process is writing the file.
    #[error("another process is writing the lock `{}`; try again", path.display())]
    Busy {
        /// The path of the file.
        path: PathBuf,
    },
}

impl Lock {
    /// Reads the user's lock. A missing file is an empty lock.
    ///
    /// # Errors
    ///
    /// [`LockError`] if the file exists and is no lock, or if another user could change it.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        lock_file(path, LockOf::User).map(Option::unwrap_or_default)
    }

    /// Changes the user's lock in one step: other processes see the old file or the new one.
    /// `change` gets the current content. Returns its result. The file is unchanged if there is an
    /// error.
    ///
    /// # Errors
    ///
    /// [`LockError`] if the file cannot be read or replaced.
    pub fn update<T>(path: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T, LockError> {
        let failed = |source| LockError::File { path: path.to_owned(), source };
        let target = target(path).map_err(failed)?;
        let folder = target.parent().unwrap_or(Path::new("/")).to_owned();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        // Two processes that approve at once must not lose an approval.
        let held = open_turn_file(&folder).map_err(failed)?;
        hold(&held, path)?;
        let mut lock = Self::read(&target)?;
        let result = change(&mut lock);
        let invalid = |reason: String| LockError::Invalid { path: path.to_owned(), reason };
        let text = lock.to_text().map_err(|error| invalid(error.to_string()))?;
        // This program has to understand the locks that it writes.
        if text.len() as u64 > MAX_FILE {
            let count = lock.entries().len();
            return Err(invalid(format!(
                "with {count} entries it would be larger than 8 MiB; remove entries that you do not need"
            )));
        }
        Self::parse(&text).map_err(invalid)?;
        replace(&target, &folder, &text).map_err(failed)?;
        Ok(result)
    }
}

/// Returns the error of a lock that is not opened: the kernel's, or that of a check of the file.
fn refused(path: &Path, source: io::Error) -> LockError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::Other => LockError::Unsafe { path, reason: source.to_string() },
        _ => LockError::File { path, source },
    }
}

/// Reads a lock. `None` if there is no such file.
pub(crate) fn lock_file(path: &Path, of: LockOf) -> Result<Option<Lock>, LockError> {
    use io::ErrorKind::{NotADirectory, NotFound};
    let failed = |source| LockError::File { path: path.to_owned(), source };
    // A link to nothing is not a missing lock.
    match path.symlink_metadata() {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let file = match of {
        LockOf::User => open_deciding_file(path).map_err(|error| refused(path, error))?,
        LockOf::Project => open_regular(path, LastLink::Keep).map_err(failed)?,
    };
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    let invalid = |reason| LockError::Invalid { path: path.to_owned(), reason };
    if text.len() as u64 > MAX_FILE {
        return Err(invalid("it is larger than 8 MiB".to_owned()));
    }
    Lock::parse(&text).map(Some).map_err(invalid)
}

/// Returns the file that a path leads to, through the user's own links. It need not exist.
fn target(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(found) => Ok(found),
        Err(error) if path.symlink_metadata().is_ok() => Err(error),
        Err(_) => std::path::absolute(path),
    }
}

/// Takes the lock of a file, which ends with the process at the latest.
fn hold(turn: &File, path: &Path) -> Result<(), LockError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match turn.try_lock() {
            Ok(()) => return Ok(()),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(PAUSE);
            }
            Err(fs::TryLockError::WouldBlock) => {
                return Err(LockError::Busy { path: path.to_owned() });
            }
            Err(fs::TryLockError::Error(source)) => {
                return Err(LockError::File { path: path.to_owned(), source });
            }
        }
    }
}

/// Replaces a file atomically with one that only this user can change. The next version has a
/// private name until then, so that no tool of another run can change or read it.
fn replace(target: &Path, folder: &Path, text: &str) -> io::Result<()> {
    let mut fresh = tempfile::Builder::new().prefix(PRIVATE_PREFIX).tempfile_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().sync_all()?;
    fresh.persist(target).map(drop).map_err(|error| error.error)
}
