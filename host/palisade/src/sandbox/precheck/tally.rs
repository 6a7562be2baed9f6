//! The counts of the pre-compilation check, and their comparison with the caps.

use super::cap::Cap;
use super::error::PrecheckError;

impl Cap {
    /// Rejects a number above the cap.
    pub(super) fn check(self, found: impl Number) -> Result<(), PrecheckError> {
        let found = found.number();
        if found <= self.max() { Ok(()) } else { Err(PrecheckError::Cap { cap: self, found }) }
    }
}

/// An integer count of any width.
pub(super) trait Number {
    fn number(self) -> u64;
}

impl Number for u64 {
    fn number(self) -> u64 {
        self
    }
}

impl Number for u32 {
    fn number(self) -> u64 {
        self.into()
    }
}

impl Number for usize {
    fn number(self) -> u64 {
        self as u64
    }
}

/// The running totals over all modules and components.
#[derive(Default)]
pub(super) struct Tally([u64; Cap::COUNT]);

impl Tally {
    /// Adds a count before the items are read, so that a claim above the cap is rejected unread.
    pub(super) fn add(&mut self, cap: Cap, more: impl Number) -> Result<(), PrecheckError> {
        let Some(sum) = self.0.get_mut(cap as usize) else { return Ok(()) };
        *sum = sum.saturating_add(more.number());
        cap.check(*sum)
    }
}
