//! Whether a tool is quick, as far as it is known: by how long it took the last times.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A tool is quick that held its thread no longer than this: what it takes to wake another thread up, and to be woken up by it, on a machine that has more to do.
const QUICK: Duration = Duration::from_micros(300);
/// A tool is brief that held its thread no longer than this: no longer than two threads work to hand its call over. Measured over MCP with 8 calls at once: 111 µs of
/// the processor for a call that another thread ran, 68 where it was left in place.
const BRIEF: Duration = Duration::from_micros(45);

/// Whether work that has held its thread for this long is slow.
pub(crate) fn is_slow(time: Duration) -> bool {
    time > QUICK
}

/// How the last two runs of one tool went. One of them may be the machine's fault.
#[derive(Debug)]
pub(crate) struct Pace {
    /// In nanoseconds, 2³² and more as one less than that: the last in the lower half, the one before it in the upper.
    last: AtomicU64,
}

impl Pace {
    /// Whether it can be expected to be done soon. Of a tool that never ran that is not known.
    pub(crate) fn is_quick(&self) -> bool {
        let [shorter, _] = self.last_two();
        !is_slow(shorter)
    }

    /// Whether it can be expected to be done before another thread could have begun with it. Not of one that is slow now and then.
    pub(crate) fn is_brief(&self) -> bool {
        let [shorter, longer] = self.last_two();
        shorter <= BRIEF && !is_slow(longer)
    }

    /// It has held its thread for this long at once.
    pub(crate) fn took(&self, time: Duration) {
        let time = u32::try_from(time.as_nanos()).unwrap_or(u32::MAX);
        // Of two that end at once either may be forgotten.
        let last = self.last.load(Ordering::Relaxed);
        self.last.store(last << 32 | u64::from(time), Ordering::Relaxed);
    }

    /// The shorter one first.
    fn last_two(&self) -> [Duration; 2] {
        let last = self.last.load(Ordering::Relaxed);
        let (one, other) = (last >> 32, last & u64::from(u32::MAX));
        [one.min(other), one.max(other)].map(Duration::from_nanos)
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self { last: AtomicU64::new(u64::MAX) }
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
        pace.took(Duration::from_secs(3600));
        assert!(!pace.is_quick(), "however long that was");
    }

    #[test]
    fn a_tool_is_brief_by_the_shorter_one_of_its_last_two_runs_unless_the_other_was_slow() {
        let pace = Pace::default();
        assert!(!pace.is_brief(), "nothing is known of it");
        pace.took(BRIEF);
        assert!(!pace.is_brief(), "and too little of one that ran once");
        pace.took(BRIEF);
        assert!(pace.is_brief() && pace.is_quick());
        pace.took(QUICK);
        assert!(pace.is_brief(), "that may have been the machine");
        pace.took(QUICK);
        assert!(!pace.is_brief() && pace.is_quick());
        for _ in 0..3 {
            pace.took(BRIEF);
            pace.took(QUICK * 2);
            assert!(!pace.is_brief() && pace.is_quick(), "it is slow every second time");
        }
    }
}
