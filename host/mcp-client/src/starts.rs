//! The bound on how often a server is started: a server that ends at once is not started in a loop.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The most starts within [`PERIOD`].
pub(crate) const MAX: usize = 5;
/// The time within which starts are counted.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);

/// The latest starts of a server.
#[derive(Debug, Default)]
pub(crate) struct Starts(VecDeque<Instant>);

impl Starts {
    /// Counts a start now.
    ///
    /// # Errors
    ///
    /// The time until another start is accepted.
    pub(crate) fn count(&mut self, now: Instant) -> Result<(), Duration> {
        self.0.retain(|start| now.duration_since(*start) < PERIOD);
        match self.0.front() {
            Some(oldest) if self.0.len() >= MAX => Err(PERIOD - now.duration_since(*oldest)),
            _ => {
                self.0.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_bounded_in_a_period() {
        let mut starts = Starts::default();
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        for second in 0..5 {
            assert_eq!(starts.count(at(second)), Ok(()));
        }
        assert_eq!(starts.count(at(10)), Err(Duration::from_secs(50)));
        assert_eq!(starts.count(at(60)), Ok(()), "the first one is a minute ago");
        assert_eq!(starts.count(at(60)), Err(Duration::from_secs(1)));
    }
}
