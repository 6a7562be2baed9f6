//! The scheduling delay of the machine, by which the oracle extends its bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The period of the measurement.
const PERIOD: Duration = Duration::from_millis(5);

/// A thread that wakes up periodically, and records its longest delay.
pub(super) struct Lateness {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Lateness {
    /// Starts the measurement.
    pub(super) fn watched() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        let thread = thread::spawn(move || {
            let mut worst = Duration::ZERO;
            while !ended.load(Ordering::Relaxed) {
                let start = Instant::now();
                thread::park_timeout(PERIOD);
                worst = worst.max(start.elapsed().saturating_sub(PERIOD));
            }
            worst
        });
        Self { over, thread }
    }

    /// Stops the measurement, and returns the longest delay.
    pub(super) fn worst(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}
