//! The share of one plugin's guests in the memory of all calls.

use super::super::offload::making_room;
use super::super::share::threshold;
use super::{MemoryLimits, PROCESS, Sum};
use crate::tool::budget::Exhausted;
use std::sync::Arc;

/// Memory held by one owner's guests, with a limit. The owner always gets up to one call's limit;
/// beyond that it must not hold more than remains free of the process's total.
#[derive(Debug)]
pub(crate) struct Part {
    owner: Arc<Sum>,
    process: &'static Sum,
    bytes: u64,
}

impl Part {
    /// Creates an empty part.
    pub(crate) fn of(owner: &Arc<Sum>) -> Self {
        Self { owner: owner.clone(), process: &PROCESS, bytes: 0 }
    }

    /// Counts memory, in bytes, that is already charged to a call.
    ///
    /// # Errors
    ///
    /// [`Exhausted::TotalMemory`]; nothing is counted then.
    pub(crate) fn grow(&mut self, more: u64, limits: MemoryLimits) -> Result<(), Exhausted> {
        let has_room = || {
            let free = limits.total.saturating_sub(self.process.get());
            self.owner.add(more, threshold(free, limits.call))
        };
        if !making_room(has_room) {
            return Err(Exhausted::TotalMemory { limit: limits.total });
        }
        self.bytes += more;
        Ok(())
    }

    /// Releases a part, in bytes.
    pub(crate) fn shrink(&mut self, less: u64) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.owner.subtract(less);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.owner.subtract(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_of_one_plugin_hold_half_of_the_memory_and_leave_some_to_each_that_comes() {
        static SUM: Sum = Sum::new();
        let limits = MemoryLimits { call: 10, total: 100 };
        let taken = |owner: &Arc<Sum>| {
            let mut part = Part { owner: owner.clone(), process: &SUM, bytes: 0 };
            while SUM.add(1, limits.total) {
                if part.grow(1, limits).is_err() {
                    SUM.subtract(1);
                    break;
                }
            }
            part
        };
        let [one, other, third] = [(); 3].map(|()| Arc::<Sum>::default());
        let parts = [&one, &other, &third].map(taken);
        assert_eq!(parts.each_ref().map(|part| part.bytes), [50, 25, 12]);
        let last = taken(&Arc::default());
        assert_eq!(last.bytes, 10, "a call gets what it may while that is free");
        drop(parts);
        assert_eq!([one, other, third].map(|sum| sum.get()), [0; 3]);
    }
}
