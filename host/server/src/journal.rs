//! The journal: an SQLite file with the sessions, calls, questions, plugins and events of hosts.
//!
//! One thread writes, in batches, and nothing that records waits for it unless it asks for a
//! commit. An event gets its number when it is committed, and can be read only afterwards: what was
//! read survives the end of the process, however it ends. The loss of power is not covered.
//!
//! | module | responsibility |
//! |---|---|
//! | `time`, `ids`, `settings`, `error` | plain data |
//! | `record`, `rows`, `filters` | what is written, what is read, and what selects it |
//! | `queue` | the records that wait, with their bounds |
//! | `ring` | the newest events in memory |
//! | `schema`, `file`, `in_place` | the format, who may touch the file, and whether it is still there |
//! | `own_events`, `apply`, `retention`, `writer` | the thread that writes |
//! | `reads`, `readers`, `listings` | reads by resource, their connections, and the reads of rows |
//! | `recovery`, `follow` | a process that was killed, and one that only reads |

mod apply;
mod error;
mod file;
mod filters;
mod follow;
mod ids;
mod in_place;
mod listings;
mod own_events;
mod queue;
mod readers;
mod reads;
mod record;
mod recovery;
mod retention;
mod ring;
mod rows;
mod schema;
mod settings;
#[cfg(test)]
mod tests;
mod time;
mod writer;

pub use error::JournalError;
pub use filters::{CallFilter, CallRef, ConfirmationFilter, EventFilter, Page, SessionFilter};
pub use ids::{CallKey, Cursor, EventId, SessionKey};
pub(crate) use own_events::line as event_line;
pub use own_events::{LOST, RECOVERED};
pub use record::{
    Body, CallEnded, CallFacts, CallStarted, ConfirmationRequested, ConfirmationResolved,
    Importance, NewEvent, Outcome, PluginSeen, Record, SessionOpened, Used,
};
pub use rows::{
    CallPage, CallRow, CallState, ConfirmationRow, Events, Health, HealthState, Latency, Listing,
    More, NoCallState, OtherBlock, PluginRow, SessionRow, StoredEvent, Summary, ToolSummary,
    UNKNOWN,
};
pub use settings::JournalSettings;
pub use time::{NoTimestamp, Timestamp};

use file::JournalFile;
use in_place::InPlace;
use queue::Entry;
use readers::Readers;
use recovery::Before;
use ring::Found;
use schema::Access;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use writer::{Shared, Writer};

/// A journal. Clones share it; the last one closes it.
///
/// ```
/// use palisade_server::journal::{EventFilter, EventId, Journal, JournalSettings};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), palisade_server::journal::JournalError> {
/// let journal = Journal::temporary(JournalSettings::default())?;
/// let events = journal.events_after(EventId::START, &EventFilter::default(), 100).await?;
/// assert!(events.events.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Journal(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    readers: Arc<Readers>,
    next_call: AtomicU64,
    before: Before,
    /// The thread that writes or follows.
    thread: Mutex<Option<JoinHandle<()>>>,
    file: JournalFile,
    /// The directory of a temporary journal.
    _directory: Option<TempDir>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("path", &self.0.file.path()).finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens a journal for writing, and creates its file and directory if they are missing. Calls
    /// that had not ended when an earlier process ended are marked as `unknown`.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if the file is not private, another process writes it, a later version or
    /// another program made it, or the system refuses it.
    pub fn open(path: &Path, settings: JournalSettings) -> Result<Self, JournalError> {
        Self::write(path, settings, None)
    }

    /// Opens a journal in a private file that is deleted in the end.
    ///
    /// # Errors
    ///
    /// [`JournalError::Unavailable`] if the system refuses it.
    pub fn temporary(settings: JournalSettings) -> Result<Self, JournalError> {
        let directory = file::temporary_directory().map_err(|error| JournalError::Unavailable {
            path: std::env::temp_dir(),
            reason: error.to_string(),
        })?;
        let path = directory.path().join("journal.db");
        Self::write(&path, settings, Some(directory))
    }

    /// Opens an existing journal for reading. Another process may write it meanwhile, and its
    /// events arrive within a fraction of a second.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), but a process that writes the journal is no error.
    pub fn read_only(path: &Path) -> Result<Self, JournalError> {
        let file = JournalFile::for_reading(path)?;
        let readers = Arc::new(Readers::new(file.path())?);
        let before = readers.read_here(|conn| Before::of(conn))?;
        let shared = Shared::new(before.event, HealthState::Closed);
        let thread = follow::spawn(readers.clone(), shared.clone());
        Self::with(file, shared, readers, before, thread, None)
    }

    fn write(
        path: &Path,
        settings: JournalSettings,
        directory: Option<TempDir>,
    ) -> Result<Self, JournalError> {
        let file = JournalFile::for_writing(path)?;
        let mut conn = schema::connect(file.path(), Access::Write)?;
        let recovered = recovery::recover(&mut conn, Timestamp::now());
        let before = recovered
            .and_then(|()| Before::of(&conn))
            .map_err(|error| schema::unusable(file.path(), &error))?;
        if !before.leaves_numbers() {
            let reason = "its numbers are used up".to_owned();
            return Err(JournalError::NotAJournal { path: file.path().to_owned(), reason });
        }
        let readers = Arc::new(Readers::new(file.path())?);
        let shared = Shared::new(before.event, HealthState::Storing);
        let writer = Writer::new(conn, InPlace::now(file.path()), shared.clone(), settings);
        let thread = std::thread::Builder::new().name("journal".to_owned());
        let thread = thread.spawn(move || writer.run());
        Self::with(file, shared, readers, before, thread, directory)
    }

    fn with(
        file: JournalFile,
        shared: Arc<Shared>,
        readers: Arc<Readers>,
        before: Before,
        thread: std::io::Result<JoinHandle<()>>,
        directory: Option<TempDir>,
    ) -> Result<Self, JournalError> {
        let thread = thread.map_err(|error| JournalError::Unavailable {
            path: file.path().to_owned(),
            reason: error.to_string(),
        })?;
        let next_call = AtomicU64::new(before.call.get().saturating_add(1));
        let thread = Mutex::new(Some(thread));
        Ok(Self(Arc::new(Inner {
            shared,
            readers,
            next_call,
            before,
            thread,
            file,
            _directory: directory,
        })))
    }

    /// Returns the number for a call that is seen first.
    #[must_use]
    pub fn next_call(&self) -> CallKey {
        CallKey::new(self.0.next_call.fetch_add(1, Ordering::Relaxed))
    }

    /// Queues a record and returns at once. If the queue is full the record is lost, and counted:
    /// an event [`LOST`] says how many events were. The end of a call keeps its outcome and time.
    pub fn record(&self, record: Record) {
        self.0.shared.queue.add(record);
    }

    /// Commits a record before it returns. Waits while the queue is full.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if the record could not be committed.
    pub async fn commit(&self, record: Record) -> Result<(), JournalError> {
        self.0.shared.queue.commit(record).await
    }

    /// Returns a receiver of the number of the newest committed event, which wakes up when there is
    /// a newer one.
    #[must_use]
    pub fn newest(&self) -> watch::Receiver<EventId> {
        self.0.shared.newest.subscribe()
    }

    /// Returns the number of the newest event that was there when this process opened the journal:
    /// the later ones are of this run.
    #[must_use]
    pub fn begin(&self) -> EventId {
        self.0.before.event
    }

    /// Returns true if the session was opened in this run, and false if an earlier process has
    /// recorded it.
    #[must_use]
    pub fn is_of_this_run(&self, session: &SessionRow) -> bool {
        session.key > self.0.before.session
    }

    /// Returns committed events after a position, the oldest first: at most `limit`, and at most
    /// 1 MiB unless the first is longer. Nothing is held for a reader between two calls.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotRead`] if the file cannot be read.
    pub async fn events_after(
        &self,
        after: EventId,
        filter: &EventFilter,
        limit: usize,
    ) -> Result<Events, JournalError> {
        match self.0.shared.ring.after(after, filter, limit) {
            Found::Here(events) => Ok(events),
            Found::InFile(newest) => {
                let filter = filter.clone();
                self.read(move |conn| reads::events::after(conn, after, newest, &filter, limit))
                    .await
            }
        }
    }

    /// Returns whether records are stored, and what was lost.
    #[must_use]
    pub fn health(&self) -> Health {
        let Shared { queue, status, .. } = &*self.0.shared;
        let losses = queue.losses();
        Health {
            state: status.state(),
            lost_events: losses.events,
            lost_records: losses.records,
            waiting: queue.waiting(),
            bytes: status.bytes(),
        }
    }

    /// Waits until everything that was recorded before is written, or lost.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.0.shared.queue.add_entry(Entry::Flush(done)) {
            // The writer may have ended meanwhile.
            let _ = written.await;
        }
    }

    /// Writes what was recorded, merges the log into the file, and closes the journal for all who
    /// share it. Blocks until that is done.
    pub fn close(self) {
        self.0.close();
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.0.readers.read(read).await
    }
}

impl Inner {
    fn close(&self) {
        self.readers.close();
        self.shared.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic there has been reported, and leaves nothing to do here.
            let _ = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}
