//! The records that wait to be written, bounded in number and in bytes. Nothing that adds a record
//! waits for the disk, unless it asks for the record's commit. Each session has a share of the
//! bytes, and of the next transaction where commits are awaited, so that a flood of one neither
//! loses a record of another nor delays its commit.

use super::error::JournalError;
use super::ids::CallKey;
use super::record::{CallEnded, Importance, Outcome, Record};
use super::time::Timestamp;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

/// The most records that wait.
const RECORDS: usize = 65_536;
/// The most memory of the records that wait, in bytes.
const BYTES: usize = 8 << 20;
/// The most records of one transaction.
pub(super) const BATCH: usize = 512;
/// The most ends of calls that are kept in their short form.
const SHORT_ENDS: usize = 65_536;

/// The answer to a record whose commit a task waits for.
pub(super) type Committed = oneshot::Sender<Result<(), JournalError>>;

/// An entry of the queue.
pub(super) enum Entry {
    /// A record, and who waits for its commit.
    Record(Record, Option<Committed>),
    /// A task waits until everything before is written.
    Flush(oneshot::Sender<()>),
    /// A test does something on the writer's thread.
    #[cfg(test)]
    Run(Box<dyn FnOnce(&rusqlite::Connection) + Send>),
}

impl Entry {
    /// Returns the session of a record, which is `None` for a record of none.
    fn session(&self) -> Option<Option<Arc<str>>> {
        match self {
            Self::Record(record, _) => Some(record.session()),
            Self::Flush(_) => None,
            #[cfg(test)]
            Self::Run(_) => None,
        }
    }
}

/// The end of a call whose record did not fit or could not be written. Without it the call would
/// count as running for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShortEnd {
    pub(super) call: CallKey,
    /// The class of the error, unless the call succeeded.
    pub(super) error_class: Option<&'static str>,
    pub(super) at: Timestamp,
}

impl From<&CallEnded> for ShortEnd {
    fn from(end: &CallEnded) -> Self {
        let error_class = match end.outcome {
            Outcome::Succeeded => None,
            Outcome::Failed { class, .. } => Some(class),
        };
        Self { call: end.call.key, error_class, at: end.at }
    }
}

/// The lost events, which have to be said, and the lost ends of calls, which have to be mended.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// The number of events.
    pub(super) events: u64,
    /// The ends of calls.
    pub(super) ends: Vec<ShortEnd>,
}

impl Lost {
    /// Returns true if there is something to say or mend.
    pub(super) fn is_owed(&self) -> bool {
        self.events > 0 || !self.ends.is_empty()
    }
}

/// The number of lost records since the journal was opened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Losses {
    pub(super) events: u64,
    pub(super) records: u64,
}

/// The entries and the losses that the writer takes at once.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    pub(super) lost: Lost,
    /// Nothing comes after this batch.
    pub(super) is_last: bool,
}

/// The queue between those who record and the writer.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
    room: Notify,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The bytes of each session.
    bytes_of: HashMap<Arc<str>, usize>,
    /// The entries whose commit a task waits for.
    awaited: usize,
    lost: Lost,
    losses: Losses,
    closed: bool,
}

impl Queue {
    /// Adds a record, or counts it as lost.
    pub(super) fn add(&self, record: Record) {
        let mut state = self.lock();
        if let Err((record, _)) = state.push(record, None) {
            state.lose(&record);
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// Adds a record as soon as there is room, and waits for its commit.
    pub(super) async fn commit(&self, mut record: Record) -> Result<(), JournalError> {
        let (mut committed, answer) = oneshot::channel();
        loop {
            // Created before the attempt, so that no wake-up is lost between it and the wait.
            let room = self.room.notified();
            match self.try_commit(record, committed)? {
                None => break,
                Some(refused) => (record, committed) = refused,
            }
            room.await;
        }
        answer.await.unwrap_or(Err(JournalError::Closed))
    }

    /// Returns what it was given if there is no room for it.
    fn try_commit(
        &self,
        record: Record,
        waiter: Committed,
    ) -> Result<Option<(Record, Committed)>, JournalError> {
        let mut state = self.lock();
        if state.closed {
            return Err(JournalError::Closed);
        }
        let pushed = state.push(record, Some(waiter));
        drop(state);
        self.arrived.notify_one();
        Ok(pushed.err().and_then(|(record, waiter)| Some((record, waiter?))))
    }

    /// Adds an entry that is no record. Returns false if the queue is closed.
    pub(super) fn add_entry(&self, entry: Entry) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        state.entries.push_back(entry);
        state.awaited += 1;
        drop(state);
        self.arrived.notify_one();
        true
    }

    /// Admits nothing more. The writer ends after what waits.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
        self.room.notify_waiters();
    }

    /// Returns the number of records that wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().entries.len()
    }

    /// Takes the next batch: at once if a task waits for a commit or the batch is full, else not
    /// before `gather_until`, so that many small transactions become one. Returns an empty batch
    /// after `idle` without a record.
    pub(super) fn take(&self, gather_until: Instant, idle: Duration) -> Batch {
        let give_up = Instant::now() + idle;
        let mut state = self.lock();
        loop {
            let until = if state.entries.is_empty() { give_up } else { gather_until };
            let wait = until.saturating_duration_since(Instant::now());
            if state.is_urgent() || wait.is_zero() {
                let batch = state.batch();
                drop(state);
                self.room.notify_waiters();
                return batch;
            }
            state = match self.arrived.wait_timeout(state, wait) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Counts records that could not be written as lost, and takes back what was lost before them.
    pub(super) fn lose<'a>(&self, earlier: Lost, records: impl Iterator<Item = &'a Record>) {
        let mut state = self.lock();
        let later = std::mem::replace(&mut state.lost, earlier);
        records.for_each(|record| state.lose(record));
        state.lost.events += later.events;
        state.lost.ends.extend(later.ends);
        state.lost.ends.truncate(SHORT_ENDS);
    }

    /// Returns the number of lost records.
    pub(super) fn losses(&self) -> Losses {
        self.lock().losses
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a record if there is room for its kind. A part of the queue is reserved for events
    /// other than chatter, and a part of that for what is known about calls.
    fn push(
        &mut self,
        record: Record,
        waiter: Option<Committed>,
    ) -> Result<(), (Record, Option<Committed>)> {
        let quarters = match &record {
            Record::Event(event) if event.importance == Importance::Chatter => 2,
            Record::Event(_) => 3,
            _ => 4,
        };
        let bytes = record.bytes();
        let free = (BYTES / 4 * quarters).saturating_sub(self.bytes);
        let session = record.session();
        // A session has at most as much as it leaves free, as in the pools of calls.
        let own = session.as_ref().and_then(|session| self.bytes_of.get(session));
        let own = own.map_or(0, |own| own + bytes);
        // A record that is larger than its part is admitted alone.
        let fits = self.entries.is_empty()
            || bytes.max(own) <= free && self.entries.len() < RECORDS / 4 * quarters;
        if self.closed || !fits {
            return Err((record, waiter));
        }
        self.bytes += bytes;
        if let Some(session) = session {
            *self.bytes_of.entry(session).or_default() += bytes;
        }
        self.awaited += usize::from(waiter.is_some());
        self.entries.push_back(Entry::Record(record, waiter));
        Ok(())
    }

    fn lose(&mut self, record: &Record) {
        match record {
            Record::Event(_) => {
                self.lost.events += 1;
                self.losses.events += 1;
            }
            Record::CallEnded(end) => {
                self.losses.records += 1;
                if self.lost.ends.len() < SHORT_ENDS {
                    self.lost.ends.push(end.as_ref().into());
                }
            }
            _ => self.losses.records += 1,
        }
    }

    /// Gives back the bytes that a record has of its session's share.
    fn release(&mut self, record: &Record) {
        let Some(session) = record.session() else { return };
        let Some(own) = self.bytes_of.get_mut(&session) else { return };
        *own = own.saturating_sub(record.bytes());
        if *own == 0 {
            self.bytes_of.remove(&session);
        }
    }

    fn is_urgent(&self) -> bool {
        self.awaited > 0 || self.closed || self.entries.len() >= BATCH
    }

    /// Moves records of the sessions whose commits are awaited to the front: up to half of a batch
    /// in all, an equal number of each session, and the records of a session stay in their order.
    fn advance_awaited(&mut self) {
        if self.awaited == 0 || self.entries.len() <= BATCH {
            return;
        }
        let is_awaited = |entry: &&Entry| matches!(entry, Entry::Record(_, Some(_)));
        let sessions: HashSet<Option<Arc<str>>> =
            self.entries.iter().filter(is_awaited).filter_map(Entry::session).collect();
        let share = (BATCH / 2).checked_div(sessions.len()).unwrap_or(0).max(1);
        let mut left: HashMap<_, usize> =
            sessions.into_iter().map(|session| (session, share)).collect();
        let mut is_first = |entry: &Entry| {
            let left = entry.session().and_then(|session| left.get_mut(&session));
            let left = left.filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        };
        let all = std::mem::take(&mut self.entries);
        let (mut entries, rest): (VecDeque<Entry>, VecDeque<Entry>) =
            all.into_iter().partition(|entry| is_first(entry));
        entries.extend(rest);
        self.entries = entries;
    }

    fn batch(&mut self) -> Batch {
        self.advance_awaited();
        let taken = self.entries.len().min(BATCH);
        let entries: Vec<Entry> = self.entries.drain(..taken).collect();
        for entry in &entries {
            match entry {
                Entry::Record(record, waiter) => {
                    self.bytes = self.bytes.saturating_sub(record.bytes());
                    self.release(record);
                    self.awaited -= usize::from(waiter.is_some());
                }
                _ => self.awaited -= 1,
            }
        }
        let mut lost = std::mem::take(&mut self.lost);
        if !self.entries.is_empty() {
            // The beginning of such a call may still wait.
            self.lost.ends = std::mem::take(&mut lost.ends);
        }
        Batch { entries, lost, is_last: self.closed && self.entries.is_empty() }
    }
}
