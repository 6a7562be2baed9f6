//! Short versions of the long runs: each call ends as expected and no resource leaks. `cargo xtask
//! soak` runs them at full length.

use std::time::Duration;

use palisade_tests::oracle::{Books, turn};
use palisade_tests::soak::{self, Report, Soak, expected, mixed};

/// The number of warm-up calls, after which each plugin has used all the pool slots that it needs
/// concurrently.
const WARM: usize = 5_000;
/// The number of calls after the warm-up.
const COUNTED: usize = 20_000;

#[test]
fn twenty_thousand_calls_of_every_kind_end_as_they_must_and_leave_nothing_behind() {
    let _turn = turn();
    let soak = Soak::new();
    let _ = soak.run(WARM, mixed);
    let before = Books::now();
    assert_eq!(soak.run(COUNTED, mixed).classes, expected(COUNTED, mixed));
    assert_eq!(before.settled(Duration::from_secs(1)), Vec::<String>::new());
    let after = Books::now();
    assert!(after.maps.abs_diff(before.maps) <= 16, "{before:?} and {after:?}");
}

/// Checks one run of this length. Runs take turns, because the counters cover the whole process.
#[track_caller]
fn holds(run: fn(usize) -> Report, length: usize) {
    let _turn = turn();
    let report = run(length);
    assert_eq!(report.broken(), Vec::<&str>::new(), "{report:#?}");
}

#[test]
fn plugins_that_are_loaded_called_and_dropped_leave_no_code_behind() {
    holds(soak::loads, 60);
}

#[test]
fn whatever_a_call_wants_too_much_of_is_refused_and_given_back() {
    holds(soak::refusals, 200);
}

#[test]
fn as_many_guests_as_there_are_sandboxes_sleep_at_little_cost_and_are_ended_at_once() {
    holds(soak::sleepers, 2);
}

#[test]
fn guests_that_hold_all_the_files_that_they_may_leave_half_of_them_to_the_host() {
    holds(soak::descriptors, 2);
}

#[test]
fn results_that_expand_leave_nothing_behind() {
    holds(soak::results, 5);
}

#[test]
fn inputs_that_expand_leave_nothing_behind() {
    holds(soak::inputs, 20);
}

#[test]
fn renames_below_deep_directories_leave_nothing_behind() {
    holds(soak::renames, 2);
}

#[test]
fn no_hostile_schema_and_input_take_long() {
    holds(soak::pairs, 1_000);
}

#[test]
fn programs_that_are_killed_while_they_write_leave_nothing_torn() {
    holds(soak::kills, 12);
}

#[test]
fn the_clock_costs_next_to_nothing_and_stands_still_when_no_call_runs() {
    holds(soak::clock, 2);
}
