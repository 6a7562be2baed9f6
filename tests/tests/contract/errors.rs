//! Tool errors of every kind, all of class `execution_error`.

use palisade_tests::guest::CONTRACT_ERRORS;
use palisade_tests::{Case, Observed, toolchain};
use serde_json::json;

fn fail(with: &str) -> Observed {
    Case::new(CONTRACT_ERRORS, "fail").input(json!({"with": with})).check()
}

#[track_caller]
fn is(with: &str, kind: &str, message: &str) {
    let seen = fail(with);
    assert_eq!((seen.kind(), seen.message("execution_error")), (kind, message));
    assert_eq!(seen.result["error"]["is_user_visible"], true);
    assert_eq!(seen.result["error"]["is_recoverable"], true);
}

#[test]
fn invalid_input_names_the_field() {
    is("invalid-input", "invalid-input", "`with`: nothing but trouble");
    assert_eq!(fail("invalid-input").result["error"]["detail"]["field"], "with");
}

#[test]
fn not_found_is_the_tools_own_error() {
    is("not-found", "not-found", "no such thing");
}

#[test]
fn permission_denied_is_the_tools_own_error() {
    is("permission-denied", "permission-denied", "not for you");
}

#[test]
fn failed_has_the_tools_message() {
    is("failed", "failed", "it broke");
}

#[test]
fn cancelled_is_the_tools_own_error() {
    let seen = fail("cancelled");
    assert_eq!(seen.kind(), "cancelled");
    assert!(seen.message("execution_error").contains("nobody cancelled it"));
}

#[test]
fn empty_error_message_is_replaced() {
    is("blank", "failed", "the tool failed without saying why");
}

#[test]
fn message_is_escaped_for_a_terminal() {
    is("deceptive", "failed", "a\\u{1b}[2Jb\\u{202e}c");
}

#[test]
fn long_message_is_cut() {
    assert_eq!(fail("long").message("execution_error").len(), 16 << 10);
}

#[test]
fn io_error_keeps_its_kind() {
    // A tool of class `none` may not open a file.
    let seen = fail("io");
    assert!(!seen.message("permission_denied").contains("os error"), "{:#}", seen.result);
}

#[test]
fn missing_files_of_class_none_are_explained() {
    for (with, class) in [("io", "permission_denied"), ("absent", "execution_error")] {
        let seen = fail(with);
        let message = seen.message(class);
        for part in ["looked for files", "class none", "class read or write"] {
            assert!(message.contains(part), "{with}: {part}: {message}");
        }
    }
}

#[test]
fn failure_of_a_tool_that_looked_for_no_file_is_not_explained() {
    is("failed", "failed", "it broke");
    is("preopens", "failed", "it broke, with 1 directories");
}

#[test]
fn missing_network_is_explained() {
    for with in ["connect", "lookup"] {
        let seen = fail(with);
        let message = seen.result["error"]["message"].as_str().unwrap_or_default();
        for part in ["looked for the network", "class none", "in its input"] {
            assert!(message.contains(part), "{with}: {part}: {message}");
        }
    }
}

#[test]
fn every_class_and_reason_is_explained_to_operators() {
    let read = |path: &str| std::fs::read_to_string(toolchain::repository(path)).unwrap();
    let (source, document) =
        (read("host/palisade/src/tool/error/class.rs"), read("docs/operators.md"));
    for of in ["ErrorClass", "PermissionReason"] {
        let names = source.split(&format!("impl {of} {{")).nth(1).unwrap();
        let names = names.split("\n}").next().unwrap().lines();
        let names: Vec<&str> =
            names.filter_map(|line| line.split_once("=> \"")?.1.strip_suffix("\",")).collect();
        assert!(names.len() > 8, "{of}: {names:?}");
        for name in names {
            assert!(document.contains(&format!("\n| `{name}` | ")), "{of}: `{name}`");
        }
    }
}
