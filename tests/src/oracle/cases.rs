//! The cases of the suites: their calls through the library alone, or through the program as well.

use std::sync::MutexGuard;

use super::Oracle;
use crate::case::Case;
use crate::observed::{Observed, Run};

/// Makes the call of a case through the library, and checks every invariant.
///
/// # Panics
///
/// If an invariant is violated.
#[must_use]
#[track_caller]
pub fn around(case: &Case) -> Observed {
    Observed::alone(run(case).0)
}

/// Checks a case as [`around`] does, then runs it through the program, and requires equal results.
///
/// # Panics
///
/// If an invariant is violated, or the two results differ.
#[must_use]
#[track_caller]
pub fn around_both(case: &Case) -> Observed {
    // Hold the turn while the program runs: its pipes and their reader threads belong to this
    // process.
    let (library, _turn) = run(case);
    Observed::compare(library, case.in_program(), case.varies())
}

#[track_caller]
fn run(case: &Case) -> (Run, MutexGuard<'static, ()>) {
    let oracle = Oracle::for_case(case);
    let run = Run::start(oracle.stage.world.clone());
    let result = oracle.call(&case.to_call(&oracle.stage.world), case.time());
    let run = run.ended_in_library(result.to_json(), oracle.events());
    (run, oracle.into_turn())
}
