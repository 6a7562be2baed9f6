//! The file of a journal: it and its directory belong to this user alone, and one process at a time
//! writes it.

use super::error::JournalError;
use palisade::internal::{Missing, PRIVATE_PREFIX, open_private_directory};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a writer waits for a lock that another process holds, because that may be ending.
const LOCK_WAIT: Duration = Duration::from_millis(500);
/// The pause between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// A checked file. Its directory cannot be replaced or written to by another user, so its path
/// keeps its meaning.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    /// Held for as long as this process writes. The kernel releases it with the process.
    _lock: Option<File>,
}

impl JournalFile {
    /// Returns the path, which has no symbolic link.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks the file or creates it, and reserves it for this process to write.
    pub(super) fn for_writing(path: &Path) -> Result<Self, JournalError> {
        let path = resolved(path, Missing::Made)?;
        let lock_path = with_suffix(&path, ".lock");
        create_private(&lock_path)?;
        check(&lock_path)?;
        let lock = File::open(&lock_path).map_err(|error| unavailable(&lock_path, &error))?;
        match try_lock_for(&lock, LOCK_WAIT) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path }),
            Err(TryLockError::Error(error)) => return Err(unavailable(&lock_path, &error)),
        }
        create_private(&path)?;
        check_all(&path)?;
        Ok(Self { path, _lock: Some(lock) })
    }

    /// Checks an existing file that is only read.
    pub(super) fn for_reading(path: &Path) -> Result<Self, JournalError> {
        let path = resolved(path, Missing::Refused)?;
        check_all(&path)?;
        Ok(Self { path, _lock: None })
    }
}

/// Creates a directory that is deleted in the end. No other user can enter it, and no tool, should
/// the directory for temporary files lie in a workspace.
pub(super) fn temporary_directory() -> std::io::Result<TempDir> {
    let private = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(PRIVATE_PREFIX).permissions(private).tempdir()
}

/// Returns the path with its directory resolved, after a check of the directory.
fn resolved(path: &Path, missing: Missing) -> Result<PathBuf, JournalError> {
    let Some(name) = path.file_name() else {
        let reason = "it names no file".to_owned();
        return Err(JournalError::Unavailable { path: path.to_owned(), reason });
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let refused = |error: std::io::Error| {
        let (path, reason) = (folder.to_owned(), error.to_string());
        match error.kind() {
            // `open_private_directory` reports a directory that is not private as `Other`.
            ErrorKind::Other => JournalError::NotPrivate { path, reason },
            _ => JournalError::Unavailable { path, reason },
        }
    };
    open_private_directory(folder, missing).map_err(refused)?;
    let folder = fs::canonicalize(folder).map_err(refused)?;
    Ok(folder.join(name))
}

/// Creates an empty file that only this user can access, unless one exists.
fn create_private(path: &Path) -> Result<(), JournalError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(unavailable(path, &error)),
    }
}

/// Checks the file, and those that SQLite keeps beside it.
fn check_all(path: &Path) -> Result<(), JournalError> {
    check(path)?;
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = with_suffix(path, suffix);
        if beside.symlink_metadata().is_ok() {
            check(&beside)?;
        }
    }
    Ok(())
}

/// Refuses a file that is not regular, belongs to another user, or can be accessed by others. It is
/// not opened: closing any handle of the file would release the locks that SQLite holds on it.
fn check(path: &Path) -> Result<(), JournalError> {
    let meta = path.symlink_metadata().map_err(|error| unavailable(path, &error))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let owner = folder.metadata().map_err(|error| unavailable(folder, &error))?.uid();
    let refused = |reason| Err(JournalError::NotPrivate { path: path.to_owned(), reason });
    let mode = meta.mode() & 0o7777;
    if meta.is_symlink() {
        refused("it is a symbolic link; name the file itself".to_owned())
    } else if !meta.is_file() {
        refused("it is not a regular file; name another one".to_owned())
    } else if meta.uid() != owner {
        // The directory was found to be this user's.
        refused(format!("it belongs to another user ({}); name a file of your own", meta.uid()))
    } else if mode & 0o077 != 0 {
        refused(format!(
            "others can read or change it (mode {mode:03o}); `chmod 600 {}` makes it private",
            path.display()
        ))
    } else if meta.nlink() > 1 {
        refused("it has a second name (a hard link); name another file".to_owned())
    } else {
        Ok(())
    }
}

/// Returns the path of a file that SQLite or the journal keeps beside it.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn unavailable(path: &Path, error: &std::io::Error) -> JournalError {
    JournalError::Unavailable { path: path.to_owned(), reason: error.to_string() }
}

/// Locks a file within a time. A child process inherits the lock until it executes its program, so
/// the lock can be held for a moment after its owner has ended.
fn try_lock_for(lock: &File, time: Duration) -> Result<(), TryLockError> {
    let until = Instant::now() + time;
    loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(LOCK_PAUSE),
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[track_caller]
    fn refused(path: &Path, with: &str) {
        for opened in [JournalFile::for_writing(path), JournalFile::for_reading(path)] {
            let why = opened.unwrap_err();
            assert!(matches!(why, JournalError::NotPrivate { .. }), "{why}");
            assert!(why.to_string().contains(with), "{why}");
        }
    }

    #[test]
    fn new_file_is_private_in_a_private_directory() {
        let base = temporary_directory().unwrap();
        let path = base.path().join("state/palisade/journal.db");
        let file = JournalFile::for_writing(&path).unwrap();
        assert_eq!((mode(file.path()), mode(path.parent().unwrap())), (0o600, 0o700));
        drop(file);
        assert!(JournalFile::for_writing(&path).is_ok(), "a file of ours is opened again");
    }

    #[test]
    fn second_writer_is_refused_while_the_first_has_it() {
        let base = temporary_directory().unwrap();
        let path = base.path().join("journal.db");
        let first = JournalFile::for_writing(&path).unwrap();
        let why = JournalFile::for_writing(&path).unwrap_err();
        assert!(matches!(why, JournalError::InUse { .. }), "{why}");
        assert!(JournalFile::for_reading(&path).is_ok());
        drop(first);
        assert!(JournalFile::for_writing(&path).is_ok());
    }

    #[test]
    fn reader_makes_nothing() {
        let base = temporary_directory().unwrap();
        let path = base.path().join("new/journal.db");
        assert!(JournalFile::for_reading(&path).is_err());
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn file_that_others_can_access_is_refused_with_remedy() {
        let base = temporary_directory().unwrap();
        let path = base.path().join("journal.db");
        drop(JournalFile::for_writing(&path).unwrap());
        for open in [0o640, 0o604, 0o620, 0o602, 0o644, 0o666] {
            set_permissions(&path, Permissions::from_mode(open)).unwrap();
            refused(&path, "`chmod 600");
        }
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(JournalFile::for_writing(&path).is_ok());
        for beside in ["-wal", "-shm", "-journal"] {
            let beside = with_suffix(&path, beside);
            fs::write(&beside, "").unwrap();
            set_permissions(&beside, Permissions::from_mode(0o666)).unwrap();
            refused(&path, "`chmod 600");
            fs::remove_file(&beside).unwrap();
        }
    }

    #[test]
    fn linked_file_is_refused() {
        let base = temporary_directory().unwrap();
        let (real, path) = (base.path().join("real"), base.path().join("journal.db"));
        create_private(&real).unwrap();
        symlink(&real, &path).unwrap();
        refused(&path, "symbolic link");
        fs::remove_file(&path).unwrap();
        fs::hard_link(&real, &path).unwrap();
        refused(&path, "hard link");
        assert_eq!(fs::read(&real).unwrap(), b"");
    }

    #[test]
    fn directory_that_others_can_access_is_refused_with_remedy() {
        let base = temporary_directory().unwrap();
        let folder = base.path().join("shared");
        fs::create_dir(&folder).unwrap();
        // A directory that all may write to is shared on purpose.
        let own = "name a directory of its own";
        for (open, remedy) in [(0o777, own), (0o750, "chmod 700"), (0o701, "chmod 700")] {
            set_permissions(&folder, Permissions::from_mode(open)).unwrap();
            refused(&folder.join("journal.db"), remedy);
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing was created there");
    }

    #[test]
    fn file_of_another_user_is_refused() {
        let base = temporary_directory().unwrap();
        let path = base.path().join("journal.db");
        drop(JournalFile::for_writing(&path).unwrap());
        // Only root can change the owner of a file.
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            refused(&path, "another user (65534)");
        }
    }
}
