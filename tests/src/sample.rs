//! The lengths of long tests: a sample of each run with every change, and the whole before a
//! release (`.ci/release`). The longest tests are in groups, and each run has those of one group.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The variable that asks for whole runs.
const WHOLE: &str = "PALISADE_WHOLE_RUNS";
/// The variable with the seed of the sample, a number. By default it is that of the day.
const SEED: &str = "PALISADE_SAMPLE_SEED";
/// The number of groups of the longest tests.
const GROUPS: u64 = 8;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A group of the longest tests. Each takes about as long as the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The first group.
    A,
    /// The second group.
    B,
    /// The third group.
    C,
    /// The fourth group.
    D,
    /// The fifth group.
    E,
    /// The sixth group.
    F,
    /// The seventh group.
    G,
    /// The eighth group.
    H,
}

/// Returns the length of a run: that of its sample, or the whole if it is asked for.
#[must_use]
pub fn sample_of<T>(whole: T, sample: T) -> T {
    if is_whole() { whole } else { sample }
}

/// Returns true, and says so, if this run leaves out a test of these groups.
///
/// # Panics
///
/// If the seed is no number.
#[must_use]
pub fn leaves_out(groups: &[Group]) -> bool {
    let seed = seed();
    let is_left_out = !is_whole() && groups.iter().all(|group| seed % GROUPS != *group as u64);
    if is_left_out {
        crate::skip(&format!(
            "a long test of {groups:?}, in the run with {SEED}={seed}; {WHOLE}=1 runs all"
        ));
    }
    is_left_out
}

fn is_whole() -> bool {
    std::env::var_os(WHOLE).is_some()
}

fn seed() -> u64 {
    match std::env::var(SEED) {
        Ok(seed) => seed.parse().unwrap_or_else(|error| panic!("{SEED}={seed}: {error}")),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            now.as_secs() / DAY.as_secs()
        }
    }
}
