//! The newest events in memory, for the many readers that are up to date.

use super::filters::EventFilter;
use super::ids::EventId;
use super::rows::{Events, StoredEvent};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

/// The most events in memory.
const EVENTS: usize = 4_096;
/// The most memory of their lines, in bytes.
const BYTES: usize = 4 << 20;
/// The most bytes of lines that are read at once, except for a single longer one.
pub(super) const READ_BYTES: usize = 1 << 20;

/// The newest events.
#[derive(Debug)]
pub(super) struct Ring(RwLock<Recent>);

#[derive(Debug)]
struct Recent {
    events: VecDeque<Arc<StoredEvent>>,
    bytes: usize,
    /// All committed events after this one are in `events`.
    complete_after: EventId,
    newest: EventId,
}

/// The answer of the ring for a reader's position.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// All events after the position.
    Here(Events),
    /// The position is too old: the events up to this newest one are in the file.
    InFile(EventId),
}

impl Ring {
    /// Creates an empty ring behind the newest event of the file.
    pub(super) fn new(newest: EventId) -> Self {
        let recent = Recent { events: VecDeque::new(), bytes: 0, complete_after: newest, newest };
        Self(RwLock::new(recent))
    }

    /// Adds committed events in their order.
    pub(super) fn extend(&self, events: Vec<StoredEvent>) {
        let mut recent = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            recent.newest = event.id;
            recent.bytes += event.line.len();
            recent.events.push_back(Arc::new(event));
        }
        while recent.events.len() > EVENTS || recent.bytes > BYTES {
            let Some(oldest) = recent.events.pop_front() else { break };
            recent.bytes -= oldest.line.len();
            recent.complete_after = oldest.id;
        }
    }

    /// Learns that another process has committed events up to this one.
    pub(super) fn skip_to(&self, newest: EventId) {
        let mut recent = self.0.write().unwrap_or_else(PoisonError::into_inner);
        (recent.newest, recent.complete_after) = (newest, newest);
    }

    /// Returns the events after a position, if they are here.
    pub(super) fn after(&self, after: EventId, filter: &EventFilter, limit: usize) -> Found {
        let recent = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if after > recent.newest {
            // No event has had this number yet: the position is one of another journal.
            let gap = Some(recent.newest.next());
            return Found::Here(Events { events: Vec::new(), scanned_to: recent.newest, gap });
        }
        if after < recent.complete_after {
            return Found::InFile(recent.newest);
        }
        let first = recent.events.partition_point(|event| event.id <= after);
        let mut page = EventPage::new(limit);
        for event in recent.events.range(first..) {
            if filter.admits(event) && !page.add(event) {
                return Found::Here(page.ended_before(event.id));
            }
        }
        Found::Here(page.complete(recent.newest))
    }
}

/// A page of events while it is filled.
pub(super) struct EventPage {
    events: Vec<Arc<StoredEvent>>,
    bytes: usize,
    limit: usize,
}

impl EventPage {
    pub(super) fn new(limit: usize) -> Self {
        Self { events: Vec::new(), bytes: 0, limit: limit.clamp(1, EVENTS) }
    }

    /// Adds an event. Returns false if it does not fit.
    pub(super) fn add(&mut self, event: &Arc<StoredEvent>) -> bool {
        self.bytes += event.line.len();
        let fits =
            self.events.is_empty() || self.events.len() < self.limit && self.bytes <= READ_BYTES;
        if fits {
            self.events.push(event.clone());
        }
        fits
    }

    /// Returns the page, which ends before this event.
    pub(super) fn ended_before(self, next: EventId) -> Events {
        let scanned_to = EventId::new(next.get().saturating_sub(1));
        Events { events: self.events, scanned_to, gap: None }
    }

    /// Returns the page, after everything up to this event was looked at.
    pub(super) fn complete(self, scanned_to: EventId) -> Events {
        Events { events: self.events, scanned_to, gap: None }
    }
}

impl EventFilter {
    /// Returns true if the event passes the filter.
    pub(super) fn admits(&self, event: &StoredEvent) -> bool {
        let has =
            |wanted: &Option<Arc<str>>, is: &Option<Arc<str>>| wanted.is_none() || wanted == is;
        has(&self.client, &event.client)
            && has(&self.session_id, &event.session_id)
            && (self.call.is_none() || self.call == event.call)
    }
}
