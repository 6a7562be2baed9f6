//! Staying awake for a moment: whoever has just had an answer asks again soon, as a rule, and is answered sooner by a thread that does not sleep.

use super::counts::Counts;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// For how long. That is about what it costs to fall asleep and to be woken up, on both sides: a call of 130 µs takes 75 without that. So nobody who asks later
/// has made this thread work more than twice as long as it would have.
pub(super) const MOMENT: Duration = Duration::from_micros(100);

/// Keeps a thread awake.
#[derive(Debug, Default)]
pub(super) struct Linger {
    /// Counts the moments, so that the newest is the only one.
    begun: Arc<AtomicUsize>,
}

impl Linger {
    /// Keeps the only thread of this runtime awake from now on, unless others are known to wait, who keep it awake as a rule, or to compute,
    /// who need the core.
    pub(super) fn begin(&self, counts: &Arc<Counts>) {
        if !counts.is_quiet() {
            return;
        }
        let (begun, counts, since) = (self.begun.clone(), counts.clone(), Instant::now());
        let this = begun.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        tokio::spawn(async move {
            let is_newest = || begun.load(Ordering::Relaxed) == this;
            while is_newest() && counts.is_quiet() && since.elapsed() < MOMENT {
                // The runtime looks for what has come, and comes back.
                tokio::task::yield_now().await;
            }
        });
    }
}
