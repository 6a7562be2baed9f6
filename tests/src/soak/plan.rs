//! How long each run is made where there is only so much time: all get the same share, and what one does not need is there for the others.

use std::time::Duration;

use super::Run;

/// A run, and how long it took at its least length.
#[derive(Debug, Clone, Copy)]
pub struct Tried {
    /// The run.
    pub run: Run,
    /// What its least length took.
    pub took: Duration,
}

impl Tried {
    /// What so many take, as far as can be told.
    fn time(&self, count: usize) -> f64 {
        self.took.as_secs_f64() * count as f64 / self.run.least as f64
    }

    /// How many there are time for: between the least and the full length.
    fn count(&self, seconds: f64) -> usize {
        let each = (self.took.as_secs_f64() / self.run.least as f64).max(f64::MIN_POSITIVE);
        // Beyond what a `usize` holds, the conversion gives its greatest value.
        ((seconds / each) as usize).clamp(self.run.least, self.run.full)
    }
}

/// How often each of these runs is made within this time, in their order. None is shorter than its least length, even where that takes longer.
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
        Tried { run: run("name", "what", full, least, |_| Report::default()), took: Duration::from_secs(seconds) }
    }

    #[test]
    fn what_a_short_run_does_not_need_is_there_for_the_long_ones() {
        // A second for ten: at full length 100, 10 and 10,000 seconds.
        let runs = [tried(10, 1_000, 1), tried(10, 100, 1), tried(10, 100_000, 1)];
        assert_eq!(plan(&runs, Duration::from_secs(310)), [1_000, 100, 2_000]);
        assert_eq!(plan(&runs, Duration::from_secs(30)), [100, 100, 100]);
    }

    #[test]
    fn no_run_is_shorter_than_what_says_something_and_none_longer_than_it_is() {
        let runs = [tried(10, 1_000, 1), tried(10, 100, 1)];
        assert_eq!(plan(&runs, Duration::ZERO), [10, 10]);
        assert_eq!(plan(&runs, Duration::from_secs(86_400)), [1_000, 100]);
    }
}
