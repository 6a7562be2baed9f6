//! The timing rules that both clients share.

use std::time::{Duration, Instant};

/// The warm-up time and the measured time of a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) warm: Duration,
    pub(super) measured: Duration,
}

/// The latencies of the calls that ended within the measured time.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) latencies: Vec<Duration>,
    pub(super) time: Duration,
}

/// The measured time as a pair of instants.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    from: Instant,
    until: Instant,
}

impl Clock {
    /// Starts the warm-up now.
    pub(super) fn start(times: Times) -> Self {
        let from = Instant::now() + times.warm;
        Self { from, until: from + times.measured }
    }

    /// Returns true if another call may start now.
    pub(super) fn runs(&self, now: Instant) -> bool {
        now < self.until
    }

    /// Records the latency of a call if it ended within the measured time.
    pub(super) fn keep(&self, begun: Instant, ended: Instant, latencies: &mut Vec<Duration>) {
        if ended >= self.from && ended < self.until {
            latencies.push(ended - begun);
        }
    }

    /// Returns the result with these latencies.
    pub(super) fn measured(&self, latencies: Vec<Duration>) -> Measured {
        Measured { latencies, time: self.until - self.from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_ending_in_the_measured_time_count() {
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
