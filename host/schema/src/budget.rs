//! The budget of work on untrusted data: accounted memory and a deadline.
//!
//! Parsing and validation run on behalf of a call. The caller passes its budget down, so that this
//! work obeys the call's memory limit, deadline and cancellation like the guest's own code.

use std::fmt;

/// The reason why work stops early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    /// The call has reached its memory limit.
    #[error("the call has used its {limit} bytes of memory")]
    CallMemory {
        /// The limit of one call, in bytes.
        limit: u64,
    },
    /// All calls of the process together have reached their memory limit.
    #[error("all calls together have used their {limit} bytes of memory")]
    TotalMemory {
        /// The limit of all calls, in bytes.
        limit: u64,
    },
    /// The address space of the process is exhausted.
    #[error("the process has no room left in its {limit} bytes of address space")]
    AddressSpace {
        /// The limit of the address space, in bytes.
        limit: u64,
    },
    /// The deadline has passed.
    #[error("the deadline has passed")]
    Deadline,
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
}

/// The resources available to a piece of work.
pub trait Budget: Send + Sync {
    /// Reserves memory, in bytes, before it is allocated.
    ///
    /// # Errors
    ///
    /// [`Exhausted::CallMemory`], [`Exhausted::TotalMemory`] or [`Exhausted::AddressSpace`];
    /// nothing is reserved then.
    fn reserve(&self, bytes: u64) -> Result<(), Exhausted>;

    /// Returns reserved memory, in bytes.
    fn release(&self, bytes: u64);

    /// Checks whether the work may continue. Work calls this at least once in every 100 µs.
    ///
    /// # Errors
    ///
    /// [`Exhausted::Deadline`] or [`Exhausted::Cancelled`].
    fn check(&self) -> Result<(), Exhausted>;
}

/// The budget of work without a waiting call, such as loading a plugin, which is bounded by its
/// data alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn reserve(&self, _: u64) -> Result<(), Exhausted> {
        Ok(())
    }

    fn release(&self, _: u64) {}

    fn check(&self) -> Result<(), Exhausted> {
        Ok(())
    }
}

/// The memory reserved by one piece of work, released on drop.
///
/// Reserves in steps, so that small work makes a single request, and checks the deadline of the
/// budget.
pub struct Purse<'b> {
    budget: &'b dyn Budget,
    reserved: u64,
    used: u64,
    work: u64,
}

impl<'b> Purse<'b> {
    /// The minimum size of a reservation, in bytes.
    const STEP: u64 = 4 << 10;
    /// The maximum reservation ahead of use, in bytes. A bounded address space is checked at each
    /// step, and must have room for memory that is reserved and not yet allocated.
    const AHEAD: u64 = 64 << 10;
    /// The amount of work between two checks, in bytes read or compared: some 50 µs.
    const CHECKED: u64 = 8 << 10;
    /// The fixed cost of one value, in the same unit.
    const NODE: u64 = 16;

    /// Creates an empty purse of this budget.
    #[must_use]
    pub fn new(budget: &'b dyn Budget) -> Self {
        Self { budget, reserved: 0, used: 0, work: 0 }
    }

    /// Returns the budget.
    #[must_use]
    pub fn budget(&self) -> &'b dyn Budget {
        self.budget
    }

    /// Takes over memory that is reserved in the budget, in bytes.
    pub fn adopt(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
        self.reserved = self.reserved.saturating_add(bytes);
    }

    /// Uses memory, in bytes, reserving it first if needed. The caller allocates afterwards.
    ///
    /// # Errors
    ///
    /// Those of [`Budget::reserve`]; the purse is not to be used any more then.
    pub fn take(&mut self, bytes: u64) -> Result<(), Exhausted> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.reserved {
            return Ok(());
        }
        // Reserve an eighth more, so that larger work makes few requests.
        let needed = self.used - self.reserved;
        let ahead = needed.max(Self::STEP).max(Self::AHEAD.min(self.reserved / 8));
        let got = match self.budget.reserve(ahead) {
            Ok(()) => ahead,
            // Near the limit the exact amount may still fit.
            Err(_) => self.budget.reserve(needed).map(|()| needed)?,
        };
        self.reserved += got;
        Ok(())
    }

    /// Returns memory to the purse, in bytes. It stays reserved for later use.
    pub fn put_back(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Counts the work on one value of this many bytes.
    pub(crate) fn worked(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.work = self.work.saturating_add(bytes as u64 + Self::NODE);
        if self.work < Self::CHECKED {
            return Ok(());
        }
        self.work = 0;
        self.budget.check()
    }

    /// Returns the memory in use, in bytes, which the caller must release. The rest is released
    /// here.
    #[must_use]
    pub fn keep(mut self) -> u64 {
        let kept = std::mem::take(&mut self.used);
        self.reserved -= kept;
        kept
    }
}

impl fmt::Debug for Purse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Purse").field("used", &self.used).finish_non_exhaustive()
    }
}

impl Drop for Purse<'_> {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.budget.release(self.reserved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Bounded(AtomicU64, u64);

    impl Budget for Bounded {
        fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
            let sum = self.0.load(Ordering::Relaxed) + bytes;
            if sum > self.1 {
                return Err(Exhausted::CallMemory { limit: self.1 });
            }
            self.0.store(sum, Ordering::Relaxed);
            Ok(())
        }

        fn release(&self, bytes: u64) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }

        fn check(&self) -> Result<(), Exhausted> {
            Ok(())
        }
    }

    #[test]
    fn purse_is_bounded_and_returns_unused_memory() {
        let budget = Bounded(AtomicU64::new(0), 10_000);
        let mut purse = Purse::new(&budget);
        assert_eq!(purse.take(9_999), Ok(()));
        assert_eq!(purse.take(2), Err(Exhausted::CallMemory { limit: 10_000 }));
        drop(purse);
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
        let mut purse = Purse::new(&budget);
        assert_eq!((purse.take(100), purse.take(10)), (Ok(()), Ok(())));
        purse.put_back(30);
        assert_eq!(purse.keep(), 80);
        assert_eq!(budget.0.load(Ordering::Relaxed), 80);
    }
}
