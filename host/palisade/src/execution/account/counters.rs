//! Counters of reserved memory: of one call, of one owner, and of the process.

use crate::execution::share::{Groups, most_within};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory of all calls in the process. It is global because several hosts share the machine's
/// memory.
pub(super) static PROCESS: Counter = Counter::new();

/// Counts memory that is in use regardless of the limits towards the process's total, in bytes. Its
/// holder bounds it.
pub(crate) fn hold_always(bytes: u64) {
    PROCESS.add_always(bytes);
}

/// Ends the count of [`hold_always`], in bytes.
pub(crate) fn release_always(bytes: u64) {
    PROCESS.subtract(bytes);
}

/// A counter of reserved memory, in bytes: of the process, or of an owner with the groups that it
/// belongs to.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    held: AtomicU64,
    groups: Groups,
}

/// The memory that is free for all owners, and the least that an owner or a group gets, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) free: u64,
    pub(super) floor: u64,
}

impl Counter {
    pub(super) const fn new() -> Self {
        Self { held: AtomicU64::new(0), groups: Groups::NONE }
    }

    /// Creates the counter of an owner of these groups.
    pub(crate) fn within(groups: Groups) -> Self {
        Self { groups, ..Self::new() }
    }

    /// Returns the groups of the owner.
    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Adds to the counter if the result stays within the limit; returns false otherwise.
    pub(super) fn add(&self, more: u64, limit: u64) -> bool {
        let added = |held: u64| held.checked_add(more).filter(|sum| *sum <= limit);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_ok()
    }

    /// Adds to the counter and to those of its groups if the owner may take so much; returns false
    /// otherwise. The counter `from`, if there is one, counts this memory until now. Threads that
    /// do this at once may exceed the threshold of a group by what each of them adds.
    pub(super) fn add_within(&self, more: u64, room: Room, from: Option<&Self>) -> bool {
        let would_hold = self.groups.iter().map(|group| {
            let is_counted = from.is_some_and(|from| from.groups.contain(group));
            (group.kind(), group.memory() + if is_counted { 0 } else { more })
        });
        let Ok(limit) = most_within(would_hold, room.free, room.floor) else { return false };
        if !self.add(more, limit) {
            return false;
        }
        self.groups.iter().for_each(|group| group.add_memory(more));
        true
    }

    /// Adds to the counter and to those of its groups, regardless of the limits.
    pub(super) fn add_always(&self, more: u64) {
        self.held.fetch_add(more, Ordering::Relaxed);
        self.groups.iter().for_each(|group| group.add_memory(more));
    }

    /// Subtracts from the counter and from those of its groups.
    pub(super) fn subtract(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.groups.iter().for_each(|group| group.subtract_memory(bytes));
    }

    pub(super) fn get(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

/// The memory that one call holds, in bytes, and whether its owner's counter counts it as well.
///
/// One number holds both, so that the counters stay true if another thread releases memory while
/// the call gets its owner.
#[derive(Debug, Default)]
pub(super) struct CallCounter(AtomicU64);

/// The counters that include the memory of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedBy {
    Process,
    ProcessAndOwner,
}

/// The bit of a call that has an owner. No call holds this much.
const OWNED: u64 = 1 << 63;

impl CountedBy {
    fn from_bits(held: u64) -> Self {
        if held & OWNED == 0 { Self::Process } else { Self::ProcessAndOwner }
    }
}

impl CallCounter {
    /// Adds to the memory if the result stays within the limit.
    pub(super) fn add(&self, more: u64, limit: u64) -> Option<CountedBy> {
        let added = |held: u64| {
            let sum = (held & !OWNED).checked_add(more).filter(|sum| *sum <= limit.min(!OWNED))?;
            Some(sum | held & OWNED)
        };
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, added)
            .ok()
            .map(CountedBy::from_bits)
    }

    pub(super) fn add_always(&self, more: u64) -> CountedBy {
        CountedBy::from_bits(self.0.fetch_add(more, Ordering::Relaxed))
    }

    pub(super) fn subtract(&self, bytes: u64) -> CountedBy {
        CountedBy::from_bits(self.0.fetch_sub(bytes, Ordering::Relaxed))
    }

    /// Records that the call has an owner, whose counter includes all later changes. Returns the
    /// memory held at that moment.
    pub(super) fn assign(&self) -> u64 {
        self.0.fetch_or(OWNED, Ordering::AcqRel)
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & !OWNED
    }

    /// Returns the memory that the call holds, and the counters that include it.
    pub(super) fn look(&self) -> (u64, CountedBy) {
        let held = self.0.load(Ordering::Relaxed);
        (held & !OWNED, CountedBy::from_bits(held))
    }
}

/// Memory that is in use regardless of the limits, such as events queued for a subscriber, or a
/// response that its client has not read yet. Its holder bounds it; it counts towards the process's
/// total, and towards the share of whom it is kept for.
#[derive(Debug)]
pub struct Owed {
    process: &'static Counter,
    kept_for: KeptFor,
    bytes: u64,
}

/// The one that memory is kept for.
#[derive(Debug, Clone, Default)]
pub(super) enum KeptFor {
    /// No client of a server.
    #[default]
    Nobody,
    /// The owner of these counters.
    Owner(Arc<Counter>),
    /// The groups of a client, such as its caller.
    Client(Groups),
}

impl KeptFor {
    pub(super) fn add(&self, bytes: u64) {
        match self {
            Self::Nobody => {}
            Self::Owner(owner) => owner.add_always(bytes),
            Self::Client(groups) => groups.iter().for_each(|group| group.add_memory(bytes)),
        }
    }

    fn subtract(&self, bytes: u64) {
        match self {
            Self::Nobody => {}
            Self::Owner(owner) => owner.subtract(bytes),
            Self::Client(groups) => groups.iter().for_each(|group| group.subtract_memory(bytes)),
        }
    }
}

impl Default for Owed {
    fn default() -> Self {
        Self::from_counted(&PROCESS, KeptFor::Nobody, 0)
    }
}

impl Owed {
    /// Counts this many bytes.
    pub fn new(bytes: usize) -> Self {
        let mut owed = Self::default();
        owed.set(bytes);
        owed
    }

    /// Replaces the counted number of bytes.
    pub(crate) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes as u64);
        if self.bytes > before {
            self.process.add_always(self.bytes - before);
            self.kept_for.add(self.bytes - before);
        } else if self.bytes < before {
            self.process.subtract(before - self.bytes);
            self.kept_for.subtract(before - self.bytes);
        }
    }

    /// Takes over memory that these counters already include.
    pub(super) fn from_counted(process: &'static Counter, kept_for: KeptFor, bytes: u64) -> Self {
        Self { process, kept_for, bytes }
    }

    /// Returns the counted number of bytes.
    #[cfg(test)]
    pub(crate) fn get(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.set(0);
    }
}
