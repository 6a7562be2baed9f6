//! A token bucket for each key, with a bound on the memory for keys that clients choose.

use super::token_bucket::{Rate, TokenBucket};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of keys with a bucket of their own. New ones above it share a bucket.
const KEYS: usize = 4096;
/// The minimum interval between two searches for full buckets.
const SWEEP: Duration = Duration::from_secs(1);

/// The token buckets of all keys, with one rate.
#[derive(Debug)]
pub(crate) struct KeyedBuckets<K> {
    rate: Rate,
    buckets: HashMap<K, TokenBucket>,
    /// The bucket of the keys without one of their own.
    shared: TokenBucket,
    swept: Instant,
}

impl<K: Eq + Hash> KeyedBuckets<K> {
    /// Creates a full bucket for every key.
    pub(crate) fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, buckets: HashMap::new(), shared: TokenBucket::new(rate, now), swept: now }
    }

    /// Takes one token of a key.
    ///
    /// # Errors
    ///
    /// Returns the time until the next token is available.
    pub(crate) fn take(&mut self, key: K, now: Instant) -> Result<(), Duration> {
        self.bucket(key, now).take(now)
    }

    fn bucket(&mut self, key: K, now: Instant) -> &mut TokenBucket {
        if self.buckets.len() >= KEYS && !self.buckets.contains_key(&key) {
            self.sweep(now);
            if self.buckets.len() >= KEYS {
                return &mut self.shared;
            }
        }
        let rate = self.rate;
        self.buckets.entry(key).or_insert_with(|| TokenBucket::new(rate, now))
    }

    /// Evicts the full buckets, whose state is the initial one.
    fn sweep(&mut self, now: Instant) {
        if now.saturating_duration_since(self.swept) >= SWEEP {
            self.swept = now;
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: u32 = 4;

    fn buckets(now: Instant) -> KeyedBuckets<usize> {
        KeyedBuckets::new(Rate::per_second(2, BURST), now)
    }

    fn taken(buckets: &mut KeyedBuckets<usize>, key: usize, now: Instant) -> u32 {
        (0..1000).take_while(|_| buckets.take(key, now).is_ok()).map(|_| 1).sum()
    }

    #[test]
    fn one_key_uses_up_no_token_of_another() {
        let start = Instant::now();
        let mut buckets = buckets(start);
        assert_eq!(taken(&mut buckets, 1, start), BURST);
        assert_eq!(taken(&mut buckets, 2, start), BURST);
    }

    #[test]
    fn keys_above_the_bound_share_a_bucket() {
        let start = Instant::now();
        let mut buckets = buckets(start);
        (0..KEYS).for_each(|key| assert!(buckets.take(key, start).is_ok()));
        assert_eq!(taken(&mut buckets, KEYS, start), BURST);
        assert_eq!(taken(&mut buckets, KEYS + 1, start), 0);
        assert_eq!(taken(&mut buckets, 0, start), BURST - 1, "a known key keeps its own bucket");
        assert_eq!(buckets.buckets.len(), KEYS);
    }

    #[test]
    fn full_buckets_are_evicted() {
        let start = Instant::now();
        let mut buckets = buckets(start);
        (0..KEYS).for_each(|key| assert!(buckets.take(key, start).is_ok()));
        let later = start + 2 * SWEEP;
        assert_eq!(taken(&mut buckets, KEYS, later), BURST);
        assert_eq!(buckets.buckets.len(), 1);
    }
}
