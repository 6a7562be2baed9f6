//! The whole suite once more where the kernel has no `openat2`, or does not let it be called: then paths are walked component by component.

use palisade_tests::skip;
use palisade_tests::without_openat2::{Refused, exists, refused_here};

/// What is not run again: what does this itself, and what no way of resolving paths makes a difference to.
const BUT: [&str; 2] = ["without_openat2::again", "afterwards::"];

#[track_caller]
fn passes(refused: Refused) {
    if !exists() {
        skip("this kernel has no openat2, so that the suite runs without it anyway");
        return;
    }
    let output = match refused.run_again("", &BUT) {
        Ok(output) => output,
        Err(error) => return skip(&format!("this kernel takes no filter: {error}")),
    };
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("without_openat2::the_call_is_refused_when_this_program_was_told_so ... ok"), "{text}");
}

#[test]
fn again_as_on_a_kernel_that_does_not_know_it() {
    passes(Refused::Unknown);
}

#[test]
fn again_as_behind_a_filter_that_forbids_it() {
    passes(Refused::Forbidden);
}

/// In the first run nothing is refused; in the others this is what says that they are what they claim to be.
#[test]
fn the_call_is_refused_when_this_program_was_told_so() {
    assert!(refused_here().is_some() || exists());
}
