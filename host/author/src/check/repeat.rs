//! The same call again, and a call that is cancelled.

use super::finding::{Findings, Topic};
use super::probe::{Probed, Seen};
use super::{Options, seeds};
use crate::case;
use crate::trial::{Bounds, Trial, TrialError};
use palisade::tool::text::elided;
use palisade::{ErrorClass, SideEffects};
use std::time::Duration;

/// The number of further calls with one input.
const AGAIN: usize = 6;
/// A call that takes less cannot be cancelled in its middle.
const SLOW: Duration = Duration::from_millis(80);

pub(super) fn tool(
    trial: &Trial,
    probed: &Probed<'_>,
    options: &Options,
    found: &mut Findings,
) -> Result<(), TrialError> {
    if let Some(seen) = probed.seen.iter().find(|it| it.result.is_success()) {
        again(trial, probed, seen, options, found)?;
    }
    if let Some(slowest) = probed.seen.iter().max_by_key(|it| it.took).filter(|it| it.took > SLOW) {
        cancelled(trial, probed, slowest, options, found)?;
    }
    Ok(())
}

fn again(
    trial: &Trial,
    probed: &Probed<'_>,
    seen: &Seen,
    options: &Options,
    found: &mut Findings,
) -> Result<(), TrialError> {
    let name = probed.definition.name().as_str();
    let with = elided(&seen.input.to_string(), 200);
    let bounds = Bounds::within(options.timeout);
    for _ in 0..AGAIN {
        trial.reset(&seeds::files())?;
        let result = trial.call(name, &seen.input, bounds);
        if result.output() != seen.result.output() {
            let message = format!(
                "it answers the same input {with} in two ways, with the same files: {}, and then {}",
                elided(&seen.result.to_string(), 80),
                elided(&result.to_string(), 80)
            );
            found.warn(Topic::Repeat, "second-answer", Some(name), message);
        }
    }
    if probed.definition.is_idempotent() && probed.definition.side_effects() != SideEffects::None {
        let before = trial.files()?;
        let _ = trial.call(name, &seen.input, bounds);
        // A second call may fail, such as the removal of a file that is gone.
        if !case::changes(&before, &trial.files()?).is_empty() {
            let message = format!(
                "it says that it is idempotent, and a second call with {with} changes files again"
            );
            found.fault(Topic::Repeat, "not-idempotent", Some(name), message);
        }
    }
    Ok(())
}

fn cancelled(
    trial: &Trial,
    probed: &Probed<'_>,
    seen: &Seen,
    options: &Options,
    found: &mut Findings,
) -> Result<(), TrialError> {
    let name = probed.definition.name().as_str();
    let before = seeds::files();
    trial.reset(&before)?;
    let after = seen.took.min(options.timeout) / 4;
    let bounds = Bounds { timeout: options.timeout, cancel_after: Some(after) };
    let result = trial.call(name, &seen.input, bounds);
    let is_cancelled = result.error().is_some_and(|it| it.class() == ErrorClass::Cancelled);
    if is_cancelled && !case::changes(&before, &trial.files()?).is_empty() {
        let message = "a cancelled call leaves changed files behind: write beside the file and rename, or poll `cancelled` first";
        found.warn(Topic::Cancellation, "left-files", Some(name), message);
    }
    Ok(())
}
