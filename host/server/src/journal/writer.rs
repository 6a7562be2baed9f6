//! The thread that writes: it takes batches from the queue, commits each in one transaction, and
//! only then makes its events known.

use super::apply::{Apply, Recent};
use super::error::JournalError;
use super::ids::EventId;
use super::in_place::InPlace;
use super::own_events;
use super::queue::{BATCH, Batch, Committed, Entry, Lost, Queue};
use super::record::Record;
use super::retention::{self, Step};
use super::ring::Ring;
use super::rows::{HealthState, StoredEvent};
use super::settings::JournalSettings;
use super::time::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// How long after a transaction the next one gathers records.
const GATHER: Duration = Duration::from_millis(10);
/// How long the writer sleeps without records before it looks at the age of the oldest.
const IDLE: Duration = Duration::from_secs(60);
/// How long it sleeps if it owes the record of a loss.
const OWING: Duration = Duration::from_secs(1);

/// The state that the writer shares with the journal.
pub(super) struct Shared {
    pub(super) queue: Queue,
    pub(super) ring: Ring,
    pub(super) newest: watch::Sender<EventId>,
    pub(super) status: Status,
}

impl Shared {
    pub(super) fn new(newest: EventId, state: HealthState) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::default(),
            ring: Ring::new(newest),
            newest: watch::Sender::new(newest),
            status: Status::new(state),
        })
    }

    /// Makes committed events known to readers.
    fn publish(&self, events: Vec<StoredEvent>) {
        let Some(newest) = events.last().map(|event| event.id) else { return };
        self.ring.extend(events);
        self.newest.send_replace(newest);
    }
}

/// How the writing goes.
pub(super) struct Status {
    state: Mutex<HealthState>,
    bytes: AtomicU64,
}

impl Status {
    pub(super) fn new(state: HealthState) -> Self {
        Self { state: Mutex::new(state), bytes: AtomicU64::new(0) }
    }

    /// Returns whether records are stored.
    pub(super) fn state(&self) -> HealthState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the used bytes of the file, as of the last batch.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    fn set(&self, state: HealthState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn is_failing(&self) -> bool {
        matches!(self.state(), HealthState::Failing { .. })
    }
}

/// The writer.
pub(super) struct Writer {
    pub(super) conn: Connection,
    pub(super) shared: Arc<Shared>,
    pub(super) settings: JournalSettings,
    in_place: InPlace,
    recent: Recent,
    /// The used bytes of the file after the last removal. A file that was fuller before is made
    /// smaller in steps between the batches.
    kept: u64,
}

/// Closes the journal when the writer ends, even by a panic: nobody waits for a dead writer.
struct ClosedAtEnd(Arc<Shared>);

impl Drop for ClosedAtEnd {
    fn drop(&mut self) {
        self.0.queue.close();
        self.0.status.set(HealthState::Closed);
        // Drops those who wait, who learn that the journal is closed.
        while !self.0.queue.take(Instant::now(), Duration::ZERO).is_last {}
    }
}

impl Writer {
    pub(super) fn new(
        conn: Connection,
        in_place: InPlace,
        shared: Arc<Shared>,
        settings: JournalSettings,
    ) -> Self {
        Self { conn, shared, settings, in_place, recent: Recent::default(), kept: u64::MAX }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let _closed = ClosedAtEnd(self.shared.clone());
        let mut last = Instant::now();
        let mut idle = Duration::ZERO;
        loop {
            let batch = self.shared.queue.take(last + GATHER, idle);
            let is_last = batch.is_last;
            let owes = self.write(batch);
            last = Instant::now();
            if is_last {
                break;
            }
            idle = match self.prune() {
                Step::More => Duration::ZERO,
                Step::Done if owes => OWING,
                Step::Done => IDLE,
            };
        }
        // Merges the log into the file. Readers may prevent it, and the next opening will do it.
        let _ = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// Writes a batch and answers those who wait for it. Returns true if something is still owed.
    fn write(&mut self, batch: Batch) -> bool {
        let Batch { entries, lost, .. } = batch;
        let mut records = Vec::with_capacity(entries.len().min(BATCH));
        let mut flushes: Vec<oneshot::Sender<()>> = Vec::new();
        for entry in entries {
            match entry {
                Entry::Record(record, waiter) => records.push((record, waiter)),
                Entry::Flush(done) => flushes.push(done),
                #[cfg(test)]
                Entry::Run(run) => run(&self.conn),
            }
        }
        let owes = self.write_records(records, lost);
        for flush in flushes {
            let _ = flush.send(());
        }
        owes
    }

    fn write_records(&mut self, records: Vec<(Record, Option<Committed>)>, lost: Lost) -> bool {
        if records.is_empty() && !lost.is_owed() && !self.shared.status.is_failing() {
            return false;
        }
        let written = self.in_place.check().and_then(|()| {
            self.transact(&records, &lost).map_err(|error| JournalError::writing(&error))
        });
        match written {
            Ok(events) => {
                self.shared.publish(events);
                self.shared.status.set(HealthState::Storing);
                answer(records, &Ok(()));
                false
            }
            Err(error) => {
                self.recent = Recent::default();
                self.fail(&error);
                // The waiter for a record learns of the failure, and such a record is not lost.
                let unknown = records.iter().filter(|(_, waiter)| waiter.is_none());
                self.shared.queue.lose(lost, unknown.map(|(record, _)| record));
                answer(records, &Err(error));
                true
            }
        }
    }

    fn transact(
        &mut self,
        records: &[(Record, Option<Committed>)],
        lost: &Lost,
    ) -> rusqlite::Result<Vec<StoredEvent>> {
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if records.is_empty() {
            // Shows whether the file can be written again.
            transaction.execute("UPDATE meta SET value = value", [])?;
        }
        let mut apply = Apply { conn: &transaction, recent: &mut self.recent, events: Vec::new() };
        if lost.events > 0 {
            apply.event(&own_events::lost(lost.events, Timestamp::now()))?;
        }
        for (record, _) in records {
            apply.record(record)?;
        }
        for end in &lost.ends {
            apply.short_end(end)?;
        }
        let events = apply.events;
        transaction.commit()?;
        Ok(events)
    }

    fn fail(&self, error: &JournalError) {
        if !self.shared.status.is_failing() {
            tracing::error!(%error, "records are lost");
            let (since, reason) = (Timestamp::now(), error.to_string().into());
            self.shared.status.set(HealthState::Failing { since, reason });
        }
    }

    /// Removes some old records, if there are any. If the file is full, it is no fuller afterwards
    /// than before the batch: a batch may add more than a step removes.
    fn prune(&mut self) -> Step {
        loop {
            match retention::step(&mut self.conn, &self.settings, Timestamp::now()) {
                Ok((step, bytes)) => {
                    self.shared.status.set_bytes(bytes);
                    if step == Step::Done || bytes <= self.kept.max(self.settings.full_at()) {
                        self.kept = bytes;
                        return step;
                    }
                }
                Err(error) => {
                    if !self.shared.status.is_failing() {
                        tracing::warn!(%error, "old records could not be removed");
                    }
                    return Step::Done;
                }
            }
        }
    }
}

fn answer(records: Vec<(Record, Option<Committed>)>, with: &Result<(), JournalError>) {
    for waiter in records.into_iter().filter_map(|(_, waiter)| waiter) {
        // The waiter may have gone.
        let _ = waiter.send(with.clone());
    }
}
