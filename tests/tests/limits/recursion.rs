//! Limits on the stack of a guest.

use palisade_tests::guest::LIMITS_RECURSION;
use palisade_tests::{Case, Observed};
use serde_json::json;

fn recurse(depth: u64) -> Observed {
    Case::new(LIMITS_RECURSION, "recurse").input(json!({"depth": depth})).check()
}

#[test]
fn recursion_obeyed() {
    assert_eq!(recurse(100).output(), "100");
}

#[test]
fn recursion_violated() {
    // The guest's shadow stack of 128 KiB overflows before the native stack does.
    assert_eq!(recurse(10_000_000).kind(), "trap");
}
