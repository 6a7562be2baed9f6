//! How many requests of one server wait for their answers, and which of them keep others waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many wait, and what for.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) waiting: AtomicUsize,
    /// Those whose call computes, and is not waited for by any other.
    slow: AtomicUsize,
}

impl Counts {
    /// Whether one more goes to the pool: where others wait already, unless the pool has calls that keep its threads busy. Then a quick one is done sooner in place.
    pub(super) fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 1 && self.slow.load(Ordering::Relaxed) == 0
    }

    /// Whether no more than one waits, and nothing computes.
    pub(super) fn is_quiet(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) <= 1 && self.slow.load(Ordering::Relaxed) == 0
    }
}

tokio::task_local! {
    /// The request that is being answered.
    pub(super) static WAITING: Waiting;
}

/// A request that waits for its answer. Dropped when it has it.
pub(super) struct Waiting {
    counts: Arc<Counts>,
    is_slow: AtomicBool,
}

impl Waiting {
    /// One more waits.
    pub(super) fn begin(counts: &Arc<Counts>) -> Self {
        counts.waiting.fetch_add(1, Ordering::Relaxed);
        Self { counts: counts.clone(), is_slow: AtomicBool::new(false) }
    }

    /// The request of this task takes its time: it is none of those any more behind which others wait.
    pub(super) fn steps_aside() {
        // What does not come as a line waits behind nobody.
        let _ = WAITING.try_with(|waiting| {
            if !waiting.is_slow.swap(true, Ordering::Relaxed) {
                waiting.counts.slow.fetch_add(1, Ordering::Relaxed);
                waiting.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let counted = if self.is_slow.load(Ordering::Relaxed) {
            &self.counts.slow
        } else {
            &self.counts.waiting
        };
        counted.fetch_sub(1, Ordering::Relaxed);
    }
}
