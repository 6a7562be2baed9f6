//! The rate limiter, keyed by client address. The current time is a parameter, so that it has no
//! clock of its own.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of addresses with a bucket of their own. New ones above it share a bucket.
const SOURCES: usize = 4096;
/// The minimum interval between two searches for full buckets.
const SWEEP: Duration = Duration::from_secs(1);
/// The limit per remote address: 200 requests per second, with a burst of 400.
const FAR: Pace = Pace { every: Duration::from_millis(5), at_once: Duration::from_secs(2) };
/// The limit for all local clients together: 10,000 requests per second, with a burst of 20,000.
const NEAR: Pace = Pace { every: Duration::from_micros(100), at_once: Duration::from_secs(2) };

/// The key of the rate limit: an IPv4 address, or an IPv6 /64 network, since one machine usually
/// holds all 2⁶⁴ addresses of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// A loopback address.
    Near,
    /// An IPv4 address, or the upper 64 bits of an IPv6 address.
    Far(u64),
}

impl Source {
    pub(super) fn of(address: IpAddr) -> Self {
        let address = address.to_canonical();
        if address.is_loopback() {
            return Self::Near;
        }
        match address {
            IpAddr::V4(address) => Self::Far(address.to_bits().into()),
            // The upper bits of a global IPv6 address are never all zero, so that none of these
            // keys equals that of an IPv4 address.
            IpAddr::V6(address) => Self::Far((address.to_bits() >> 64) as u64),
        }
    }

    fn pace(self) -> Pace {
        match self {
            Self::Near => NEAR,
            Self::Far(_) => FAR,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    /// The interval at which one token is added.
    every: Duration,
    /// The time in which an empty bucket fills up, which sets the burst.
    at_once: Duration,
}

/// The token buckets of all addresses. A bucket is stored as the time at which it is full again.
#[derive(Debug)]
pub(super) struct Rates {
    full_at: HashMap<u64, Instant>,
    near: Instant,
    /// The shared bucket of the addresses without one of their own.
    others: Instant,
    swept: Instant,
}

impl Rates {
    pub(super) fn new(now: Instant) -> Self {
        Self { full_at: HashMap::new(), near: now, others: now, swept: now }
    }

    /// Takes one token.
    ///
    /// # Errors
    ///
    /// Returns the time until the next token is available.
    pub(super) fn take(&mut self, now: Instant, source: Source) -> Result<(), Duration> {
        let pace = source.pace();
        let full_at = self.bucket(now, source);
        let then = now.max(*full_at) + pace.every;
        match (then - now).checked_sub(pace.at_once) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                *full_at = then;
                Ok(())
            }
        }
    }

    /// Removes tokens, down to an empty bucket.
    pub(super) fn fine(&mut self, now: Instant, source: Source, tokens: u32) {
        let pace = source.pace();
        let full_at = self.bucket(now, source);
        *full_at = (now.max(*full_at) + pace.every * tokens).min(now + pace.at_once);
    }

    fn bucket(&mut self, now: Instant, source: Source) -> &mut Instant {
        let Source::Far(address) = source else { return &mut self.near };
        if self.full_at.len() >= SOURCES && !self.full_at.contains_key(&address) {
            if now.saturating_duration_since(self.swept) >= SWEEP {
                self.swept = now;
                // A full bucket is the initial state, so that it can be forgotten.
                self.full_at.retain(|_, full_at| *full_at > now);
            }
            if self.full_at.len() >= SOURCES {
                return &mut self.others;
            }
        }
        self.full_at.entry(address).or_insert(now)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn far(last: u8) -> Source {
        Source::of(IpAddr::from([192, 0, 2, last]))
    }

    fn at_once(rates: &mut Rates, now: Instant, source: Source) -> usize {
        (0..100_000).take_while(|_| rates.take(now, source).is_ok()).count()
    }

    #[test]
    fn another_machine_asks_four_hundred_times_at_once_and_two_hundred_times_a_second() {
        let start = Instant::now();
        let mut rates = Rates::new(start);
        assert_eq!(at_once(&mut rates, start, far(1)), 400);
        assert_eq!(rates.take(start, far(1)), Err(5 * MILLISECOND));
        assert_eq!(rates.take(start + 4 * MILLISECOND, far(1)), Err(MILLISECOND));
        assert_eq!(rates.take(start + 5 * MILLISECOND, far(1)), Ok(()));
        assert_eq!(at_once(&mut rates, start + 1005 * MILLISECOND, far(1)), 200);
        assert_eq!(at_once(&mut rates, start + 3600 * 1000 * MILLISECOND, far(1)), 400);
    }

    #[test]
    fn this_machine_asks_ten_thousand_times_a_second() {
        let start = Instant::now();
        let (mut rates, near) = (Rates::new(start), Source::of(IpAddr::from([127, 0, 0, 1])));
        assert_eq!(at_once(&mut rates, start, near), 20_000);
        assert_eq!(at_once(&mut rates, start + 1000 * MILLISECOND, near), 10_000);
    }

    #[test]
    fn who_asks_too_often_holds_up_no_other_address() {
        let start = Instant::now();
        let mut rates = Rates::new(start);
        at_once(&mut rates, start, far(1));
        assert_eq!(at_once(&mut rates, start, far(2)), 400);
    }

    #[test]
    fn a_fine_empties_a_bucket_and_makes_no_debts() {
        let start = Instant::now();
        let mut rates = Rates::new(start);
        (0..19).for_each(|_| rates.fine(start, far(1), 20));
        assert_eq!(at_once(&mut rates, start, far(1)), 20);
        (0..1000).for_each(|_| rates.fine(start, far(1), 20));
        assert_eq!(rates.take(start + 4 * MILLISECOND, far(1)), Err(MILLISECOND));
        assert_eq!(rates.take(start + 5 * MILLISECOND, far(1)), Ok(()));
    }

    #[test]
    fn a_network_of_ipv6_is_one_source_and_an_ipv4_address_in_any_spelling() {
        let of = |address: &str| Source::of(address.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), far(1));
        assert_eq!(
            (of("::1"), of("127.8.9.1"), of("::ffff:127.0.0.1")),
            (Source::Near, Source::Near, Source::Near)
        );
    }

    #[test]
    fn so_many_addresses_are_told_apart_and_the_others_share() {
        let start = Instant::now();
        let mut rates = Rates::new(start);
        let source = |number: u32| Source::of(IpAddr::from(number.to_be_bytes()));
        let many = (1 << 30)..(1 << 30) + SOURCES as u32;
        many.for_each(|number| assert!(rates.take(start, source(number)).is_ok()));
        let (one, another) = (source(1 << 31), source((1 << 31) + 1));
        assert_eq!(at_once(&mut rates, start, one), 400);
        assert!(
            rates.take(start, another).is_err(),
            "it shares the bucket of the first that found no place"
        );
        assert_eq!(rates.full_at.len(), SOURCES);
        assert!(rates.take(start, Source::Near).is_ok(), "this machine has a bucket of its own");
        // The full buckets were evicted, so that the new address has one of its own.
        assert_eq!(at_once(&mut rates, start + 2 * SWEEP, another), 400);
        assert_eq!(rates.full_at.len(), 1);
    }
}
