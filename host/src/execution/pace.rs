//! How long a tool takes, as far as it is known: by what it took the last time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The last time of one tool, in microseconds; at most some seventy minutes.
#[derive(Debug)]
pub(crate) struct Pace(AtomicU32);

impl Pace {
    /// Whether the tool was done within this time when it last ran. Unknown counts as no.
    pub(crate) fn was_within(&self, time: Duration) -> bool {
        u128::from(self.0.load(Ordering::Relaxed)) <= time.as_micros()
    }

    /// It was done in this time.
    pub(crate) fn took(&self, time: Duration) {
        self.0.store(u32::try_from(time.as_micros()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self(AtomicU32::new(u32::MAX))
    }
}
