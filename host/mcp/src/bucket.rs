//! A token bucket, for rate limits.

use tokio::time::Instant;

/// A token bucket: a burst of `capacity`, refilled at `per_second`.
#[derive(Debug)]
pub(super) struct Bucket {
    capacity: f64,
    per_second: f64,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// Creates a full bucket.
    pub(super) fn new(capacity: u32, per_second: u32, now: Instant) -> Self {
        let capacity = f64::from(capacity);
        Self { capacity, per_second: f64::from(per_second), tokens: capacity, at: now }
    }

    /// Takes a token. Returns false if there is none.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + gained).min(self.capacity);
        self.at = now;
        let is_there = self.tokens >= 1.0;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::time::Duration;

    #[test]
    fn what_it_holds_may_happen_at_once_and_then_as_much_as_flows_in() {
        let start = Instant::now();
        let mut bucket = Bucket::new(3, 10, start);
        assert!((0..3).all(|_| bucket.take(start)));
        assert!(!bucket.take(start));
        assert!(!bucket.take(start + Duration::from_millis(99)));
        assert!(bucket.take(start + Duration::from_millis(200)));
        let later = start + Duration::from_secs(3600);
        assert_eq!((0..100).filter(|_| bucket.take(later)).count(), 3);
    }
}
