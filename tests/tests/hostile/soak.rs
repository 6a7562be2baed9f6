//! Short versions of the long runs: each call ends as expected and no resource leaks. `cargo xtask
//! soak` runs them at full length. A change runs samples of them (`sample`).

use std::time::Duration;

use palisade_tests::oracle::{Resources, turn};
use palisade_tests::sample::{Group, leaves_out, sample_of};
use palisade_tests::soak::{self, Report, Soak, expected, mixed};

/// The number of warm-up calls, after which each plugin has used all the pool slots that it needs
/// concurrently.
const WARM: usize = 5_000;

#[test]
fn mixed_calls_leave_nothing() {
    if leaves_out(&[Group::G]) {
        return;
    }
    let _turn = turn();
    let counted = sample_of(20_000, 5_000);
    let soak = Soak::new();
    let _ = soak.run(WARM, mixed);
    let before = Resources::now();
    assert_eq!(soak.run(counted, mixed).classes, expected(counted, mixed));
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
    holds(soak::loads, sample_of(60, 30));
}

#[test]
fn excessive_demands_are_refused_and_released() {
    holds(soak::refusals, sample_of(200, 80));
}

#[test]
fn sleeping_guests_in_all_sandboxes_cost_little_and_end_at_once() {
    holds(soak::sleepers, sample_of(2, 1));
}

#[test]
fn guests_holding_all_files_leave_half_to_the_host() {
    holds(soak::descriptors, 2);
}

#[test]
fn expanding_results_leave_nothing() {
    holds(soak::results, sample_of(5, 3));
}

#[test]
fn expanding_inputs_leave_nothing() {
    if is_alone() {
        return holds(soak::inputs, sample_of(20, 8));
    }
    runs_alone("soak::expanding_inputs_leave_nothing");
}

/// The variable of a process that runs one test.
const ALONE: &str = "PALISADE_TEST_ALONE";

fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Runs a test in a process of its own: the allocator of this one keeps memory of earlier tests.
#[track_caller]
fn runs_alone(test: &str) {
    let program = std::env::current_exe().expect("a test knows its program");
    let _turn = turn();
    let ran = std::process::Command::new(program).args(["--exact", test]).env(ALONE, "1").output();
    let ran = ran.expect("the test starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn renames_below_deep_directories_leave_nothing() {
    if leaves_out(&[Group::A]) {
        return;
    }
    holds(soak::renames, sample_of(2, 1));
}

#[test]
fn hostile_schemas_and_inputs_are_fast() {
    holds(soak::pairs, sample_of(1_000, 300));
}

#[test]
fn killed_programs_leave_no_torn_files() {
    holds(soak::kills, sample_of(12, 6));
}

#[test]
fn epoch_clock_is_cheap_and_stops_without_calls() {
    if leaves_out(&[Group::F]) {
        return;
    }
    holds(soak::clock, 2);
}
