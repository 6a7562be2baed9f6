//! One reader: its place in the journal, and what it reads next.

use super::draining::Draining;
use super::position::Position;
use crate::confirmations::Attending;
use crate::journal::{EventFilter, EventId, Journal, JournalError, StoredEvent};
use crate::metrics::CountedReader;
use palisade::CancellationToken;
use palisade::internal::{Account, fits_address_space};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// The most events that are read at a time.
const BATCH: usize = 256;
/// The memory of so many events and of their texts for a connection, in bytes: the journal reads
/// 1 MiB at a time.
const PAGE_BYTES: usize = 4 << 20;

/// A place in the journal.
pub(crate) struct Reader {
    journal: Journal,
    filter: EventFilter,
    place: EventId,
    /// The first event that it may read, if it asked for earlier ones.
    gap: Option<EventId>,
    newest: watch::Receiver<EventId>,
}

/// The next events of a reader, with the gap before them if there is one.
pub(super) struct Batch {
    /// If events were lost for the reader: the first one that it did not miss.
    pub(super) gap: Option<EventId>,
    pub(super) events: Vec<Arc<StoredEvent>>,
}

impl Reader {
    /// Creates a reader from this position on, but not of the events up to `hidden`.
    pub(crate) fn new(
        journal: Journal,
        filter: EventFilter,
        position: Position,
        hidden: EventId,
    ) -> Self {
        let newest = journal.newest();
        let wanted = position.in_journal(&journal);
        let gap = (wanted < hidden).then(|| hidden.next());
        Self { journal, filter, place: wanted.max(hidden), gap, newest }
    }

    /// Returns the place: everything up to it was looked at.
    pub(super) fn place(&self) -> EventId {
        self.place
    }

    /// Waits for events. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Result<Batch, JournalError> {
        if let Some(gap) = self.gap.take() {
            return Ok(Batch { gap: Some(gap), events: Vec::new() });
        }
        loop {
            if !fits_address_space(PAGE_BYTES) {
                let reason = "the address space of the server is in use (`ulimit -v`)";
                return Err(JournalError::NotRead { reason: reason.into() });
            }
            let newest = *self.newest.borrow_and_update();
            let page = self.journal.events_after(self.place, &self.filter, BATCH).await?;
            self.place = page.scanned_to;
            if page.gap.is_some() || !page.events.is_empty() {
                return Ok(Batch { gap: page.gap, events: page.events });
            }
            // The reader itself holds the journal with the sender.
            if self.place >= newest && self.newest.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// A reader with all that ends when its connection does.
pub(crate) struct Stream {
    pub(crate) reader: Reader,
    /// The time between signs of life.
    pub(crate) heartbeat: Duration,
    /// Says once that the server ends soon.
    pub(crate) draining: Draining,
    /// Ends the stream.
    pub(crate) closing: CancellationToken,
    /// The place among the readers.
    pub(crate) _permit: OwnedSemaphorePermit,
    pub(crate) _counted: CountedReader,
    /// The account of the reader, which its unsent chunks count in.
    pub(crate) account: Account,
    /// The attendance of an operator, who could answer questions.
    pub(crate) _attending: Option<Attending>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test whose preparation fails has failed")]
    use super::*;
    use crate::journal::JournalSettings;
    use palisade_tests::program::address_space_in_use;

    #[tokio::test]
    async fn page_without_address_space_is_not_read() {
        let own = "live::reader::tests::page_without_address_space_is_not_read";
        let journal = Journal::temporary(JournalSettings::default()).unwrap();
        let Some(_held) = address_space_in_use(own) else { return };
        let (filter, position) = (EventFilter::default(), Position::Now);
        let mut reader = Reader::new(journal, filter, position, EventId::START);
        let Err(error) = reader.next().await else { panic!("a page was read") };
        assert!(error.to_string().contains("ulimit -v"), "{error}");
    }
}
