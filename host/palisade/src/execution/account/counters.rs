//! Sums of reserved memory: of one call, of one owner, and of the process.

use super::PROCESS;
use std::sync::atomic::{AtomicU64, Ordering};

/// A sum of reserved memory, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Sum(AtomicU64);

impl Sum {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds to the sum if the result stays within the limit; returns false otherwise.
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

/// The memory that one call holds, in bytes, and whether its owner's sum counts it as well.
///
/// One number holds both, so that the sums stay true if another thread releases memory while the
/// call gets its owner.
#[derive(Debug, Default)]
pub(super) struct Held(AtomicU64);

/// The sums that count the memory of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sums {
    Process,
    ProcessAndOwner,
}

/// The bit of a call that has an owner. No call holds this much.
const OWNED: u64 = 1 << 63;

impl Sums {
    fn of(held: u64) -> Self {
        if held & OWNED == 0 { Self::Process } else { Self::ProcessAndOwner }
    }
}

impl Held {
    /// Adds to the memory if the result stays within the limit.
    pub(super) fn add(&self, more: u64, limit: u64) -> Option<Sums> {
        let added = |held: u64| {
            let sum = (held & !OWNED).checked_add(more).filter(|sum| *sum <= limit.min(!OWNED))?;
            Some(sum | held & OWNED)
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).ok().map(Sums::of)
    }

    pub(super) fn add_always(&self, more: u64) -> Sums {
        Sums::of(self.0.fetch_add(more, Ordering::Relaxed))
    }

    pub(super) fn subtract(&self, bytes: u64) -> Sums {
        Sums::of(self.0.fetch_sub(bytes, Ordering::Relaxed))
    }

    /// Records that the call has an owner, whose sum counts all later changes. Returns the memory
    /// held at that moment.
    pub(super) fn assign(&self) -> u64 {
        self.0.fetch_or(OWNED, Ordering::AcqRel)
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & !OWNED
    }

    /// Returns the sums that count this call.
    pub(super) fn sums(&self) -> Sums {
        Sums::of(self.0.load(Ordering::Relaxed))
    }
}

/// Memory that is in use regardless of the limits, such as events queued for a subscriber. Its
/// holder bounds it; it counts towards the process's total.
#[derive(Debug)]
pub struct Owed {
    process: &'static Sum,
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

    /// Takes over memory that this sum already counts.
    pub(super) fn taken_over(process: &'static Sum, bytes: u64) -> Self {
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
