//! Counters of reserved memory: of one call, of one owner, and of the process.

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

/// A counter of reserved memory, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds to the counter if the result stays within the limit; returns false otherwise.
    pub(super) fn add(&self, more: u64, limit: u64) -> bool {
        let added = |held: u64| held.checked_add(more).filter(|sum| *sum <= limit);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_ok()
    }

    pub(super) fn add_always(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
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

    /// Returns the counters that include this call.
    pub(super) fn counted_by(&self) -> CountedBy {
        CountedBy::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// Memory that is in use regardless of the limits, such as events queued for a subscriber. Its
/// holder bounds it; it counts towards the process's total.
#[derive(Debug)]
pub struct Owed {
    process: &'static Counter,
    bytes: u64,
}

impl Default for Owed {
    fn default() -> Self {
        Self { process: &PROCESS, bytes: 0 }
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
        } else if self.bytes < before {
            self.process.subtract(before - self.bytes);
        }
    }

    /// Takes over memory that this counter already includes.
    pub(super) fn from_counted(process: &'static Counter, bytes: u64) -> Self {
        Self { process, bytes }
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
