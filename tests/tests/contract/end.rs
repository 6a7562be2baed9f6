//! Guests that end without returning.

use palisade_tests::guest::CONTRACT_END;
use palisade_tests::{Case, Observed};
use serde_json::json;

fn end(how: &str) -> Observed {
    Case::new(CONTRACT_END, "end").input(json!({"how": how})).check()
}

/// Checks that the result of a crash discloses neither the guest's words nor the way it crashed.
#[track_caller]
fn redacted(seen: &Observed, words: &str) {
    assert_eq!(seen.kind(), "trap");
    assert_eq!(seen.message("execution_error"), "the plugin crashed");
    assert_eq!(seen.result["error"]["is_user_visible"], false);
    assert_eq!(seen.result["error"]["is_recoverable"], false);
    assert!(!seen.result.to_string().contains(words), "{:#}", seen.result);
}

#[test]
fn panic_is_redacted() {
    redacted(&end("panic"), "last words");
}

#[test]
fn index_out_of_range_is_a_trap() {
    let seen = Case::new(CONTRACT_END, "end").input(json!({"how": "index"})).check();
    assert_eq!(seen.kind(), "trap");
}

#[test]
fn exit_is_a_redacted_failure_for_any_code() {
    redacted(&end("exit-0"), "exited");
    redacted(&end("exit-3"), "leaving");
}

#[test]
fn printed_text_never_reaches_the_model() {
    let seen = end("return");
    assert_eq!(seen.output(), "returned");
    assert!(!seen.result.to_string().contains("on standard output"));
}
