//! Short versions of the long runs: each call ends as expected and no resource leaks. `cargo xtask
//! soak` runs them at full length.

use std::time::Duration;

use palisade_tests::oracle::{Resources, turn};
use palisade_tests::soak::{self, Report, Soak, expected, mixed};

/// The number of warm-up calls, after which each plugin has used all the pool slots that it needs
/// concurrently.
const WARM: usize = 5_000;
/// The number of calls after the warm-up.
const COUNTED: usize = 20_000;

#[test]
fn twenty_thousand_mixed_calls_leave_nothing() {
    let _turn = turn();
    let soak = Soak::new();
    let _ = soak.run(WARM, mixed);
    let before = Resources::now();
    assert_eq!(soak.run(COUNTED, mixed).classes, expected(COUNTED, mixed));
    assert_eq!(before.settled(Duration::from_secs(1)), Vec::<String>::new());
    let after = Resources::now();
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
fn loaded_and_dropped_plugins_leave_no_code() {
    holds(soak::loads, 60);
}

#[test]
fn excessive_demands_are_refused_and_released() {
    holds(soak::refusals, 200);
}

#[test]
fn sleeping_guests_in_all_sandboxes_cost_little_and_end_at_once() {
    holds(soak::sleepers, 2);
}

#[test]
fn guests_holding_all_files_leave_half_to_the_host() {
    holds(soak::descriptors, 2);
}

#[test]
fn expanding_results_leave_nothing() {
    holds(soak::results, 5);
}

#[test]
fn expanding_inputs_leave_nothing() {
    holds(soak::inputs, 20);
}

#[test]
fn renames_below_deep_directories_leave_nothing() {
    holds(soak::renames, 2);
}

#[test]
fn hostile_schemas_and_inputs_are_fast() {
    holds(soak::pairs, 1_000);
}

#[test]
fn killed_programs_leave_no_torn_files() {
    holds(soak::kills, 12);
}

#[test]
fn epoch_clock_is_cheap_and_stops_without_calls() {
    holds(soak::clock, 2);
}
