//! Whether a tool is quick, as far as it is known: by how long it took the last times.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// A tool is quick that held its thread no longer than this: about what it takes to wake another thread up, and to be woken up by it.
const QUICK: Duration = Duration::from_micros(300);
/// So many slow runs in a row make a tool a slow one. One of them may be the machine's fault.
const OFTEN: u8 = 2;

/// Whether work that has held its thread for this long is slow.
pub(crate) fn is_slow(time: Duration) -> bool {
    time > QUICK
}

/// How the last runs of one tool went.
#[derive(Debug)]
pub(crate) struct Pace {
    slow_in_a_row: AtomicU8,
}

impl Pace {
    /// Whether it can be expected to be done soon. Of a tool that never ran that is not known.
    pub(crate) fn is_quick(&self) -> bool {
        self.slow_in_a_row.load(Ordering::Relaxed) < OFTEN
    }

    /// It has held its thread for this long at once.
    pub(crate) fn took(&self, time: Duration) {
        let before = self.slow_in_a_row.load(Ordering::Relaxed);
        let now = if is_slow(time) { before.saturating_add(1).min(OFTEN) } else { 0 };
        // Of two that end at once either may count.
        self.slow_in_a_row.store(now, Ordering::Relaxed);
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self { slow_in_a_row: AtomicU8::new(OFTEN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_quick_once_it_was_and_until_it_was_slow_twice() {
        let pace = Pace::default();
        assert!(!pace.is_quick(), "nothing is known of it");
        pace.took(QUICK);
        assert!(pace.is_quick());
        pace.took(QUICK * 2);
        assert!(pace.is_quick(), "that may have been the machine");
        pace.took(QUICK);
        pace.took(QUICK * 2);
        assert!(pace.is_quick(), "not twice in a row");
        pace.took(QUICK * 2);
        assert!(!pace.is_quick());
    }
}
