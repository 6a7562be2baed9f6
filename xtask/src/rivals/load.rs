//! What all ways of asking have in common: for how long, and what is kept.

use std::time::{Duration, Instant};

/// How long a server is asked before it counts, and for how long it counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) warm: Duration,
    pub(super) measured: Duration,
}

/// What came of it: how long each call took that ended in the time that counts.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) latencies: Vec<Duration>,
    pub(super) time: Duration,
}

/// When calls count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    from: Instant,
    until: Instant,
}

impl Clock {
    /// Begins now.
    pub(super) fn start(times: Times) -> Self {
        let from = Instant::now() + times.warm;
        Self { from, until: from + times.measured }
    }

    /// Whether another call is begun at this moment.
    pub(super) fn runs(&self, now: Instant) -> bool {
        now < self.until
    }

    /// Keeps how long a call took that has ended at this moment, where it counts.
    pub(super) fn keep(&self, begun: Instant, ended: Instant, latencies: &mut Vec<Duration>) {
        if ended >= self.from && ended < self.until {
            latencies.push(ended - begun);
        }
    }

    /// What was kept.
    pub(super) fn measured(&self, latencies: Vec<Duration>) -> Measured {
        Measured { latencies, time: self.until - self.from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_that_end_in_the_time_that_is_measured() {
        let second = Duration::from_secs(1);
        let clock = Clock::start(Times { warm: second, measured: 2 * second });
        let start = clock.from - second;
        let mut kept = Vec::new();
        for (begun, ended) in [(0, 500), (900, 1100), (2500, 2900), (2900, 3100)] {
            let at = |millis| start + Duration::from_millis(millis);
            clock.keep(at(begun), at(ended), &mut kept);
        }
        assert_eq!(kept, [Duration::from_millis(200), Duration::from_millis(400)]);
        assert!(clock.runs(start) && !clock.runs(start + 3 * second));
    }
}
