//! Throttles progress notifications, and drops those that go backwards.

use crate::rate_limit::{Rate, TokenBucket};
use palisade::execution::Progress;
use std::time::Duration;
use tokio::time::Instant;

/// The rate of progress notifications.
const RATE: Rate = Rate::per_second(10, 10);

/// The largest value that is sent: the last one from which each whole step counts. Outputs increase
/// it further, and a value beyond all numbers is none in JSON.
const MOST: f64 = (1_u64 << 53) as f64;

/// The increase of the value by an output: small, so that it passes no step of the tool.
const LITTLE: f64 = 1e-6;

/// The progress throttle of one call.
#[derive(Debug)]
pub(super) struct ProgressThrottle {
    bucket: TokenBucket,
    sent: Option<f64>,
    /// The total of the last sent step.
    total: Option<f64>,
    throttled: Option<Progress>,
}

impl ProgressThrottle {
    /// Creates the throttle of a call that starts now.
    pub(super) fn new(now: Instant) -> Self {
        Self { bucket: TokenBucket::new(RATE, now), sent: None, total: None, throttled: None }
    }

    /// Returns the step if it may be sent now. A throttled step is kept until the next one or the
    /// end of the call. A step that does not increase is dropped, since the protocol requires
    /// increasing values, and so is one beyond [`MOST`].
    pub(super) fn admit(&mut self, step: Progress, now: Instant) -> Option<Progress> {
        let is_in_range = (-MOST..=MOST).contains(&step.done);
        if !is_in_range || self.sent.is_some_and(|sent| step.done <= sent) {
            return None;
        }
        if self.bucket.take(now).is_err() {
            self.throttled = Some(step);
            return None;
        }
        Some(self.record(step))
    }

    /// Returns the step of an output that may be sent now. Its value is just above the last one,
    /// since an output has no measure of its own, and the protocol requires increasing values.
    ///
    /// # Errors
    ///
    /// Returns the time until it may be sent.
    pub(super) fn admit_output(&mut self, now: Instant) -> Result<Progress, Duration> {
        self.bucket.take(now).map(|()| self.output())
    }

    /// Returns the step of an output that is sent despite the limit: the last one.
    pub(super) fn output(&mut self) -> Progress {
        let done = self.sent.map_or(0.0, |sent| (sent + LITTLE).max(sent.next_up()));
        self.sent = Some(done);
        Progress { done, total: self.total, message: None }
    }

    /// Returns the last throttled step: the final progress is worth sending despite the limit.
    pub(super) fn last(&mut self) -> Option<Progress> {
        let step =
            self.throttled.take().filter(|step| self.sent.is_none_or(|sent| step.done > sent))?;
        Some(self.record(step))
    }

    fn record(&mut self, step: Progress) -> Progress {
        self.throttled = None;
        self.sent = Some(step.done);
        self.total = step.total;
        step
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn step(done: f64) -> Progress {
        Progress { done, total: Some(100.0), message: None }
    }

    #[test]
    fn progress_has_a_burst_and_ten_steps_per_second() {
        let start = Instant::now();
        let mut throttle = ProgressThrottle::new(start);
        let at = |millis| start + Duration::from_millis(millis);
        let told = |throttle: &mut ProgressThrottle, from: u32, millis| {
            (from..from + 50)
                .filter(|done| throttle.admit(step(f64::from(*done)), at(millis)).is_some())
                .count()
        };
        assert_eq!(told(&mut throttle, 0, 0), 10);
        assert_eq!(told(&mut throttle, 100, 500), 5);
    }

    #[test]
    fn only_increasing_progress_is_sent() {
        let now = Instant::now();
        let mut throttle = ProgressThrottle::new(now);
        let done = [1.0, 1.0, 0.5, f64::NAN, f64::INFINITY, 2.0];
        let told: Vec<f64> =
            done.iter().filter_map(|done| Some(throttle.admit(step(*done), now)?.done)).collect();
        assert_eq!(told, [1.0, 2.0]);
    }

    #[test]
    fn output_increases_the_value_and_passes_no_step() {
        let now = Instant::now();
        let mut throttle = ProgressThrottle::new(now);
        let mut values = vec![throttle.admit_output(now).unwrap().done];
        for done in [1.0, 2.0, 1e15] {
            values.push(throttle.admit(step(done), now).unwrap().done);
            let output = throttle.admit_output(now).unwrap();
            assert_eq!(output.total, Some(100.0));
            values.push(output.done);
        }
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
        let mut more = 0;
        let wait = loop {
            match throttle.admit_output(now) {
                Ok(_) => more += 1,
                Err(wait) => break wait,
            }
        };
        assert_eq!(more, 3, "outputs and steps share one limit");
        assert!(throttle.admit_output(now + wait).is_ok());
    }

    #[test]
    fn output_after_the_largest_progress_has_a_value() {
        let now = Instant::now();
        let mut throttle = ProgressThrottle::new(now);
        for done in [f64::MAX, f64::MIN, MOST * 2.0] {
            assert_eq!(throttle.admit(step(done), now), None, "{done}");
        }
        let mut last = throttle.admit(step(MOST), now).unwrap().done;
        for _ in 0..1_000 {
            let next = throttle.output().done;
            assert!(next.is_finite() && next > last, "{next}");
            last = next;
        }
    }

    #[test]
    fn last_progress_is_sent_at_the_end() {
        let now = Instant::now();
        let mut throttle = ProgressThrottle::new(now);
        for done in 0..100 {
            let _ = throttle.admit(step(f64::from(done)), now);
        }
        assert_eq!(throttle.last().map(|step| step.done), Some(99.0));
        assert_eq!(throttle.last(), None);
    }
}
