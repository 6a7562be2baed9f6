//! The lengths of long tests: a sample of each run with every change, and the whole before a
//! release (`.ci/release`).

/// The variable that asks for whole runs.
const WHOLE: &str = "PALISADE_WHOLE_RUNS";

/// Returns the length of a run: that of its sample, or the whole if it is asked for.
#[must_use]
pub fn sample_of<T>(whole: T, sample: T) -> T {
    match std::env::var_os(WHOLE) {
        Some(_) => whole,
        None => sample,
    }
}
