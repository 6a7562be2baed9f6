//! The cases of the suites: their calls through the library alone, or through the program as well.

use std::cell::RefCell;
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
    let world = oracle.stage.world.clone();
    let run = RefCell::new(Run::start(world.clone()));
    // The oracle may repeat a call, and each repetition meets the same workspace.
    let prepare = || {
        if run.borrow().has_changed_workspace() {
            world.empty_workspace();
            case.arrange_in(&world);
            run.replace(Run::start(world.clone()));
        }
    };
    let result = oracle.call_prepared(&case.to_call(&world), case.time(), &prepare);
    let run = run.into_inner().ended_in_library(result.to_json(), oracle.events());
    (run, oracle.into_turn())
}
