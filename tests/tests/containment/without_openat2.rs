//! Runs the suite again with `openat2` missing or forbidden, so that paths are resolved one
//! component at a time.

use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::skip;
use palisade_tests::without_openat2::{Refused, exists, refused_here};

/// Tests that are not repeated: this one, which would recurse, and those that do not depend on path
/// resolution.
const BUT: [&str; 2] = ["without_openat2::suite_passes", "after_stop::"];

#[track_caller]
fn passes(refused: Refused) {
    if !exists() {
        skip("this kernel has no openat2, so that the suite runs without it anyway");
        return;
    }
    let output = match refused.run_again("", &BUT) {
        Ok(output) => output,
        Err(error) => return skip(&format!("this kernel accepts no filter: {error}")),
    };
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("without_openat2::openat2_is_refused_when_requested ... ok"), "{text}");
}

#[test]
fn suite_passes_on_a_kernel_without_openat2() {
    if leaves_out(&[Group::A, Group::E]) {
        return;
    }
    passes(Refused::Unknown);
}

#[test]
fn suite_passes_behind_a_filter_forbidding_openat2() {
    if leaves_out(&[Group::C, Group::G]) {
        return;
    }
    passes(Refused::Forbidden);
}

/// A no-op in the first run; in the repeated runs it proves that the seccomp filter is active.
#[test]
fn openat2_is_refused_when_requested() {
    assert!(refused_here().is_some() || exists());
}
