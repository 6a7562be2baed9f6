//! The run-time history of a tool, which predicts whether its next call is quick.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest run of a quick tool: the cost of waking another thread and being woken by it on a
/// busy machine.
const QUICK: Duration = Duration::from_micros(300);
/// The longest run of a brief tool: the CPU time that two threads spend on handing a call over.
/// Measured over MCP with 8 concurrent calls: 111 µs of CPU time for a call on another thread, 68
/// µs in place.
const BRIEF: Duration = Duration::from_micros(45);

/// Returns true if work that blocks its thread for this long is slow.
pub(crate) fn is_slow(time: Duration) -> bool {
    time > QUICK
}

/// The durations of a tool's last two runs. Two, because a single run may be slow for reasons of
/// the machine.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The last run in the lower half and the one before in the upper half, in nanoseconds,
    /// saturating at 2³² − 1.
    last: AtomicU64,
}

impl Pace {
    /// Returns true if the tool is likely to finish soon. An unknown tool is not.
    pub(crate) fn is_quick(&self) -> bool {
        let [shorter, _] = self.last_two();
        !is_slow(shorter)
    }

    /// Returns true if the tool is likely to finish before another thread could start it. An
    /// intermittently slow tool is not.
    pub(crate) fn is_brief(&self) -> bool {
        let [shorter, longer] = self.last_two();
        shorter <= BRIEF && !is_slow(longer)
    }

    /// Records a run that blocked its thread for this long.
    pub(crate) fn took(&self, time: Duration) {
        let time = u32::try_from(time.as_nanos()).unwrap_or(u32::MAX);
        // Racy read-modify-write; losing a sample is acceptable.
        let last = self.last.load(Ordering::Relaxed);
        self.last.store(last << 32 | u64::from(time), Ordering::Relaxed);
    }

    /// Returns the last two durations, the shorter first.
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
