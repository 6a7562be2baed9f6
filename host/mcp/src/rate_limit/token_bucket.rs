//! A token bucket and its rate.

use std::time::Duration;
use tokio::time::Instant;

/// A rate limit: the size of a burst, and the interval after which another token is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    interval: Duration,
    burst: u32,
}

impl Rate {
    /// Creates a rate of one token per interval after a burst.
    pub(crate) const fn one_per(interval: Duration, burst: u32) -> Self {
        Self { interval, burst }
    }

    /// Creates a rate of this many tokens per second after a burst. The number is a constant above
    /// zero.
    pub(crate) const fn per_second(tokens: u32, burst: u32) -> Self {
        Self::one_per(Duration::from_nanos(1_000_000_000 / tokens as u64), burst)
    }

    /// Returns the time in which an empty bucket fills up.
    fn fill_time(self) -> Duration {
        self.interval * self.burst
    }
}

/// A token bucket, stored as the time at which it is full again.
#[derive(Debug, Clone)]
pub(crate) struct TokenBucket {
    rate: Rate,
    full_at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket.
    pub(crate) fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, full_at: now }
    }

    /// Takes one token.
    ///
    /// # Errors
    ///
    /// Returns the time until the next token is available.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.max(now) + self.rate.interval;
        let wait = (full_at - now).saturating_sub(self.rate.fill_time());
        if !wait.is_zero() {
            return Err(wait);
        }
        self.full_at = full_at;
        Ok(())
    }

    /// Returns true if the bucket is in its initial state.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn taken(bucket: &mut TokenBucket, now: Instant) -> usize {
        (0..1000).take_while(|_| bucket.take(now).is_ok()).count()
    }

    #[test]
    fn bucket_grants_a_burst_and_then_its_rate() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(Rate::per_second(10, 3), start);
        assert_eq!(taken(&mut bucket, start), 3);
        assert_eq!(bucket.take(start), Err(100 * MILLISECOND));
        assert_eq!(bucket.take(start + 99 * MILLISECOND), Err(MILLISECOND));
        assert_eq!(bucket.take(start + 100 * MILLISECOND), Ok(()));
        assert_eq!(taken(&mut bucket, start + 300 * MILLISECOND), 2);
    }

    #[test]
    fn idle_bucket_holds_no_more_than_its_burst() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(Rate::per_second(10, 3), start);
        assert_eq!(taken(&mut bucket, start), 3);
        assert_eq!(taken(&mut bucket, start + Duration::from_secs(3600)), 3);
    }

    #[test]
    fn refused_request_costs_no_token() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(Rate::one_per(Duration::from_secs(10), 1), start);
        assert_eq!(bucket.take(start), Ok(()));
        assert!((0..100).all(|_| bucket.take(start).is_err()));
        assert_eq!(bucket.take(start + Duration::from_secs(10)), Ok(()));
    }
}
