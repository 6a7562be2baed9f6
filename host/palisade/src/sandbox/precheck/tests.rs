//! Tests of the pre-compilation check.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod features;
mod hostile;
mod numbers;

use super::{Cap, PrecheckError, check};
use palisade_tests::wat::binary;

/// Checks a component in text form.
fn text(component: &str) -> Result<(), PrecheckError> {
    check(&binary(component))
}

/// Returns the number with which a component exceeded the cap.
#[track_caller]
fn too_many(cap: Cap, component: &str) -> u64 {
    match text(component) {
        Err(PrecheckError::Cap { cap: refused, found }) if refused == cap => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn shipped_plugins_pass() {
    for plugin in palisade_plugins::all() {
        check(&plugin.bytes()).unwrap_or_else(|refused| panic!("{}: {refused}", plugin.name));
    }
}

#[test]
fn refusal_has_subject_count_and_cap() {
    let refused = PrecheckError::Cap { cap: Cap::Nesting, found: 17 };
    assert_eq!(
        refused.to_string(),
        "it has 17 levels of components inside each other; at most 16 are accepted"
    );
}
