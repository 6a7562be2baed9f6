//! The division of a time budget among the soak tests: equal shares, of which the unused part goes
//! to the others.

use std::time::Duration;

use super::Run;

/// A soak test with its time at the minimum count.
#[derive(Debug, Clone, Copy)]
pub struct Tried {
    /// The soak test.
    pub run: Run,
    /// The time of the minimum count.
    pub took: Duration,
}

impl Tried {
    /// Estimates the time of `count` repetitions.
    fn time(&self, count: usize) -> f64 {
        self.took.as_secs_f64() * count as f64 / self.run.least as f64
    }

    /// Returns the count that fits into `seconds`, between the minimum and the full count.
    fn count(&self, seconds: f64) -> usize {
        let each = (self.took.as_secs_f64() / self.run.least as f64).max(f64::MIN_POSITIVE);
        // The conversion saturates at the bounds of `usize`.
        ((seconds / each) as usize).clamp(self.run.least, self.run.full)
    }
}

/// Returns the count for each run within `time`, in the order of the runs. No count is below its
/// minimum, even if that exceeds the budget.
#[must_use]
pub fn plan(tried: &[Tried], time: Duration) -> Vec<usize> {
    let mut cheapest: Vec<usize> = (0..tried.len()).collect();
    cheapest.sort_by(|a, b| full(&tried[*a]).total_cmp(&full(&tried[*b])));
    let (mut left, mut counts) = (time.as_secs_f64(), vec![0; tried.len()]);
    for (done, place) in cheapest.into_iter().enumerate() {
        let one = &tried[place];
        counts[place] = one.count(left / (tried.len() - done) as f64);
        left = (left - one.time(counts[place])).max(0.0);
    }
    counts
}

fn full(one: &Tried) -> f64 {
    one.time(one.run.full)
}

#[cfg(test)]
mod tests {
    use super::super::{Report, run};
    use super::*;

    fn tried(least: usize, full: usize, seconds: u64) -> Tried {
        Tried {
            run: run("name", "what", full, least, |_| Report::default()),
            took: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn unused_time_goes_to_longer_runs() {
        // One second for ten repetitions, so 100, 10 and 10,000 seconds at full length.
        let runs = [tried(10, 1_000, 1), tried(10, 100, 1), tried(10, 100_000, 1)];
        assert_eq!(plan(&runs, Duration::from_secs(310)), [1_000, 100, 2_000]);
        assert_eq!(plan(&runs, Duration::from_secs(30)), [100, 100, 100]);
    }

    #[test]
    fn runs_stay_between_minimum_and_full_length() {
        let runs = [tried(10, 1_000, 1), tried(10, 100, 1)];
        assert_eq!(plan(&runs, Duration::ZERO), [10, 10]);
        assert_eq!(plan(&runs, Duration::from_secs(86_400)), [1_000, 100]);
    }
}
