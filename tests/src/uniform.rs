//! The invariants that hold for the result of every call.

use palisade::{ErrorClass, events::Event};
use serde_json::Value;

use crate::program::Ran;

/// The keys of a result, in alphabetical order.
const KEYS: [&str; 13] = [
    "call_id",
    "command_executed",
    "content",
    "digest",
    "duration_ms",
    "error",
    "files_modified",
    "metadata",
    "output",
    "plugin",
    "success",
    "tool",
    "usage",
];
/// The keys of an error.
const ERROR_KEYS: [&str; 6] =
    ["class", "detail", "errors", "is_recoverable", "is_user_visible", "message"];
/// The keys of the usage.
const USAGE_KEYS: [&str; 4] =
    ["bytes_read", "bytes_written", "peak_memory_bytes", "truncated_bytes"];

/// The closed set of error classes with their exit codes.
const CLASSES: [(&str, i32); 9] = [
    ("not_found", 3),
    ("permission_denied", 4),
    ("user_denied", 4),
    ("confirmation_timeout", 4),
    ("execution_error", 5),
    ("validation_error", 6),
    ("timeout", 7),
    ("resource_exhausted", 7),
    ("cancelled", 130),
];

/// The error classes of calls that never started.
const NEVER_STARTED: [&str; 4] =
    ["not_found", "validation_error", "user_denied", "confirmation_timeout"];

/// Checks the shape of a result.
///
/// # Panics
///
/// If a field is missing, has another type, or contradicts another field.
#[track_caller]
pub fn check_shape(result: &Value) {
    assert_eq!(keys(result), KEYS, "the fields of a result are fixed");
    assert_eq!(keys(&result["usage"]), USAGE_KEYS, "the fields of the usage are fixed");
    for (key, value) in result["usage"].as_object().expect("the usage is an object") {
        assert!(value.is_u64(), "{key} is a count: {value}");
    }
    for (key, right) in [
        ("call_id", result["call_id"].is_string()),
        ("tool", result["tool"].as_str().is_some_and(|tool| !tool.trim().is_empty())),
        ("success", result["success"].is_boolean()),
        ("content", result["content"].is_array()),
        ("metadata", result["metadata"].is_object()),
        ("files_modified", result["files_modified"].is_array()),
        ("duration_ms", result["duration_ms"].as_f64().is_some_and(|ms| ms >= 0.0)),
        ("plugin with digest", result["plugin"].is_string() == result["digest"].is_string()),
    ] {
        assert!(right, "`{key}` is not what it must be: {result:#}");
    }
    let success = result["success"] == true;
    assert_eq!(
        result["output"].is_string(),
        success,
        "exactly one of output and error is there: {result:#}"
    );
    assert_eq!(
        result["error"].is_null(),
        success,
        "exactly one of output and error is there: {result:#}"
    );
    if !success {
        check_error(&result["error"]);
    }
}

#[track_caller]
fn check_error(error: &Value) {
    assert_eq!(keys(error), ERROR_KEYS, "the fields of an error are fixed");
    assert!(exit_code(error).is_some(), "the class is one of the closed set: {error:#}");
    assert!(
        error["message"].as_str().is_some_and(|text| !text.trim().is_empty()),
        "an error says something: {error:#}"
    );
    assert!(error["detail"].is_object() && error["errors"].is_array(), "{error:#}");
    assert!(
        error["is_user_visible"].is_boolean() && error["is_recoverable"].is_boolean(),
        "{error:#}"
    );
    if error["detail"]["kind"] == "trap" {
        assert_eq!(error["message"], "the plugin crashed", "a crash is redacted: {error:#}");
        assert_eq!(error["is_user_visible"], false, "a crash is redacted: {error:#}");
    }
    let text = error.to_string();
    for noise in ["panicked at", ".rs:", "wasm backtrace"] {
        assert!(!text.contains(noise), "an error is no backtrace: {error:#}");
    }
    // The random name of a temporary directory may contain `0x`, but does not begin with it.
    let is_address = |part: &str| part.starts_with("0x");
    let mut parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    assert!(!parts.any(is_address), "an error has no addresses: {error:#}");
}

/// Checks that the exit code of the program corresponds to the result.
///
/// # Panics
///
/// If the exit code differs.
#[track_caller]
pub fn check_exit_code(result: &Value, ran: &Ran) {
    let expected = if result["success"] == true { Some(0) } else { exit_code(&result["error"]) };
    assert_eq!(Some(ran.code), expected, "{result:#}\n{}", ran.stderr);
}

fn exit_code(error: &Value) -> Option<i32> {
    CLASSES.iter().find(|(class, _)| error["class"] == **class).map(|(_, code)| *code)
}

/// Checks the events of one call against its result: exactly one terminal event, of the
/// corresponding kind, at the end; and at most one `tool.called`, at the start or after what was
/// asked, which a call that never started lacks.
///
/// # Panics
///
/// If the events contradict the result.
#[track_caller]
pub fn check_events(result: &Value, events: &[Event]) {
    let names: Vec<&str> = events.iter().map(Event::name).collect();
    assert_eq!(
        events.iter().filter(|event| event.is_terminal()).count(),
        1,
        "one terminal event: {names:?}"
    );
    let last = events.last().expect("there is an event");
    let (class, kind) = (result["error"]["class"].as_str(), &result["error"]["detail"]["kind"]);
    match last {
        Event::Completed(_, completion) => {
            assert_eq!(completion.success, result["success"] == true, "{names:?}");
            assert!(class.is_none() || kind == "unsuccessful", "{result:#}");
        }
        Event::InputInvalid(..) => assert_eq!(class, Some("validation_error")),
        Event::Failed(_, failure) => assert_eq!(class, Some(ErrorClass::as_str(failure.class))),
        other => panic!("the last event is {}, which is not terminal", other.name()),
    }
    let called = names.iter().filter(|name| **name == "tool.called").count();
    assert!(called <= 1, "{names:?}");
    if class.is_some_and(|class| NEVER_STARTED.contains(&class)) {
        let asked = names.iter().filter(|name| name.starts_with("tool.confirmation_")).count();
        assert_eq!(
            names.len() - asked,
            1,
            "a call that never starts has only its terminal event and its confirmation events: {names:?}"
        );
    } else if called == 1 {
        let first = names.iter().find(|name| !name.starts_with("tool.confirmation_"));
        assert_eq!(
            first,
            Some(&"tool.called"),
            "the confirmation events precede the start: {names:?}"
        );
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::{CallId, ErrorKind, ToolResult};
    use serde_json::json;

    fn failed() -> Value {
        ToolResult::failure(CallId::new("c"), "t", ErrorKind::Cancelled).to_json()
    }

    /// Returns true if a failed result passes with this value at this place.
    fn passes(pointer: &str, value: Value) -> bool {
        let mut result = failed();
        *result.pointer_mut(pointer).expect("the place is there") = value;
        // An oracle counts the panics of all tests, so take the turn.
        let _turn = crate::oracle::turn();
        std::panic::catch_unwind(|| check_shape(&result)).is_ok()
    }

    #[test]
    fn correct_result_passes() {
        check_shape(&failed());
        check_shape(&ToolResult::success(CallId::new("c"), "t", "text").to_json());
    }

    #[test]
    fn inconsistent_result_is_found() {
        assert!(!passes("/output", json!("both output and error")));
        assert!(!passes("/error", Value::Null));
        assert!(!passes("/success", json!(true)));
        assert!(!passes("/error/class", json!("invented_by_a_guest")));
        assert!(!passes("/error/message", json!(" ")));
        assert!(!passes("/plugin", json!("without a digest")));
        assert!(!passes("/usage/bytes_read", json!(-1)));
        assert!(!passes("/error/message", json!("panicked at src/lib.rs:1")));
    }
}
