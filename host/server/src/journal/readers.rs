//! Connections for reading, used on blocking threads.

use super::error::JournalError;
use super::schema::{self, Access};
use palisade::internal::run_blocking;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// The most reads at once.
const CONNECTIONS: usize = 4;

/// A few connections for reading. Between two reads none holds a view of the file, which would keep
/// the log from being merged.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    /// Opens the first connection, which shows that the file can be read.
    pub(super) fn new(path: &Path) -> Result<Self, JournalError> {
        let first = schema::connect(path, Access::Read)?;
        Ok(Self {
            path: path.to_owned(),
            idle: Mutex::new(vec![first]),
            turns: Arc::new(Semaphore::new(CONNECTIONS)),
        })
    }

    /// Reads on a blocking thread, after at most a few other reads.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, JournalError> {
        let Ok(turn) = self.turns.clone().acquire_owned().await else {
            return Err(JournalError::Closed);
        };
        let readers = self.clone();
        let reading = run_blocking(move || {
            // Kept until the read ends, even if nobody waits for it any more.
            let _turn = turn;
            readers.read_here(read)
        });
        reading.await.unwrap_or_else(|failed| {
            Err(JournalError::NotRead { reason: failed.to_string().into() })
        })
    }

    /// Reads on this thread.
    pub(super) fn read_here<T>(
        &self,
        read: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, JournalError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => schema::connect(&self.path, Access::Read)?,
        };
        let found = read(&mut conn).map_err(|error| JournalError::reading(&error))?;
        // After an error the connection is closed, and the next read opens another.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        Ok(found)
    }

    /// Closes the connections that are not in use.
    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
