//! How late the machine itself is: what a call is not to blame for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often it is looked at.
const PERIOD: Duration = Duration::from_millis(5);

/// A thread that wants to run at each period, and writes down how long it had to wait at worst.
pub(super) struct Lateness {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Lateness {
    /// From now on.
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

    /// The longest wait there was.
    pub(super) fn worst(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}
