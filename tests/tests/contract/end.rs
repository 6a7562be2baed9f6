//! Ways in which a guest ends other than by returning.

use palisade_tests::guest::CONTRACT_END;
use palisade_tests::{Case, Seen};
use serde_json::json;

fn end(how: &str) -> Seen {
    Case::new(CONTRACT_END, "end").input(json!({"how": how})).check()
}

#[test]
fn a_panic_is_a_trap_with_the_guests_last_words() {
    let seen = Case::new(CONTRACT_END, "end").input(json!({"how": "panic"})).check();
    assert_eq!(seen.kind(), "trap");
    assert!(seen.message("execution_error").contains("these are my last words"), "{:#}", seen.result);
    assert_eq!(seen.result["error"]["is_recoverable"], false);
}

#[test]
fn an_index_out_of_range_is_a_trap() {
    let seen = Case::new(CONTRACT_END, "end").input(json!({"how": "index"})).check();
    assert_eq!(seen.kind(), "trap");
}

#[test]
fn leaving_by_exit_is_a_failure_whatever_the_code_is() {
    let zero = end("exit-0");
    assert_eq!(zero.kind(), "trap");
    assert!(zero.message("execution_error").contains("exited with code 0"), "{:#}", zero.result);
    let three = end("exit-3");
    assert!(three.message("execution_error").contains("exited with code"), "{:#}", three.result);
    assert!(three.message("execution_error").contains("leaving"), "{:#}", three.result);
}

#[test]
fn what_is_printed_never_reaches_the_model() {
    let seen = end("return");
    assert_eq!(seen.output(), "returned");
    assert!(!seen.result.to_string().contains("on standard output"));
}
