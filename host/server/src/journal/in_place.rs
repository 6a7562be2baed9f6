//! Whether the files of an open journal are where they were opened. SQLite goes on in files that
//! were moved or removed, and what it writes there is lost with the process.

use super::error::JournalError;
use super::file::with_suffix;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file, whatever its name: its device and its number there.
type Identity = (u64, u64);

/// The files of an open journal.
#[derive(Debug)]
pub(super) struct InPlace {
    path: PathBuf,
    file: Option<Identity>,
    log_path: PathBuf,
    log: Option<Identity>,
    lock_path: PathBuf,
    /// The file by whose lock this process is the only writer.
    lock: Option<Identity>,
}

impl InPlace {
    /// Notes the files of a journal that has just been written.
    pub(super) fn now(path: &Path) -> Self {
        let log_path = with_suffix(path, "-wal");
        let lock_path = with_suffix(path, ".lock");
        let (file, log, lock) = (identity(path), identity(&log_path), identity(&lock_path));
        Self { path: path.to_owned(), file, log_path, log, lock_path, lock }
    }

    /// Refuses to go on if a file is no longer in its place.
    pub(super) fn check(&mut self) -> Result<(), JournalError> {
        if self.file != identity(&self.path) {
            return Err(JournalError::Displaced { path: self.path.clone() });
        }
        // Where the lock is gone, another process may write to the same file.
        if self.lock != identity(&self.lock_path) {
            return Err(JournalError::Displaced { path: self.lock_path.clone() });
        }
        let log = identity(&self.log_path);
        if self.log.is_some() && self.log != log {
            return Err(JournalError::Displaced { path: self.log_path.clone() });
        }
        self.log = log;
        Ok(())
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let meta = path.symlink_metadata().ok()?;
    Some((meta.dev(), meta.ino()))
}
