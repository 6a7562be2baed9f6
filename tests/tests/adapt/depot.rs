//! Calls of functions: what they return, how they fail, and what their class gives them.

use super::depot;
use palisade::SideEffects::{None as Pure, Read, Write};
use serde_json::{Value, json};

#[test]
fn text_of_a_function_is_the_output() {
    let seen = depot(Pure, "ping").input(json!({"name": "\"Ada\"\n"})).check();
    assert_eq!(seen.output(), "\"Ada\"\n is here");
    assert_eq!(seen.result["content"], json!([{"type": "text", "text": seen.output()}]));
    let inline = depot(Pure, "sums_of_two").input(json!({"a": 255, "b": 255})).check();
    assert_eq!(inline.result["content"], json!([{"type": "json", "json": 510}]));
}

#[test]
fn function_without_a_result_has_no_output() {
    let seen = depot(Pure, "work_nothing").check();
    assert_eq!((seen.output(), &seen.result["content"]), ("", &json!([])));
}

#[test]
fn error_of_a_function_is_that_of_its_tool() {
    let divide = |a: i32, b: i32| depot(Pure, "work_divide").input(json!({"a": a, "b": b})).check();
    assert_eq!(divide(7, 2).output(), "3");
    for (seen, message) in [
        (divide(1, 0), "by-zero"),
        (divide(i32::MIN, -1), "{\"overflow\":-2147483648}"),
        (depot(Pure, "work_fail").input(json!({"why": "No.\u{1b}[2J"})).check(), "No.\\u{1b}[2J"),
        (
            depot(Pure, "work_fail").input(json!({"why": ""})).check(),
            "the tool failed without saying why",
        ),
    ] {
        assert_eq!((seen.kind(), seen.message("execution_error")), ("failed", message));
    }
}

#[test]
fn crash_of_a_function_is_redacted() {
    let seen = depot(Pure, "work_crash").check();
    assert_eq!(seen.kind(), "trap");
    assert!(!seen.result.to_string().contains("burns"), "{:#}", seen.result);
}

#[test]
fn float_that_is_no_number_is_a_text() {
    let seen = depot(Pure, "work_floats").check();
    let floats = seen.result["content"][0]["json"].clone();
    let expected = json!(["NaN", "Infinity", "-Infinity", -0.0, f64::MAX, f64::MIN_POSITIVE]);
    assert_eq!(floats, expected);
}

fn read(class: palisade::SideEffects) -> palisade_tests::Observed {
    let case = depot(class, "work_read_file").input(json!({"path": "note.txt"}));
    case.arrange(|world| _ = world.file("note.txt", "a note")).check()
}

#[test]
fn class_none_gives_no_file() {
    let seen = read(Pure);
    assert_eq!(seen.kind(), "failed");
    assert!(seen.message("execution_error").contains("a tool of class none has none"));
    seen.changed_nothing();
}

#[test]
fn class_read_gives_files_to_read_only() {
    assert_eq!(read(Read).output(), "a note");
    let write = |class| {
        let input = json!({"path": "new.txt", "text": "new"});
        depot(class, "work_write_file").input(input).allow(Write).check()
    };
    let refused = write(Read);
    assert_eq!(refused.kind(), "failed");
    refused.changed_nothing();
    let written = write(Write);
    assert_eq!(written.output(), "");
    written.modified(&["new.txt"]);
    assert!(written.worlds().all(|world| world.read("new.txt").as_deref() == Some("new")));
}

#[test]
fn class_write_asks_before_a_call() {
    let seen = depot(Write, "work_nothing").check();
    assert_eq!(seen.error("permission_denied")["detail"]["reason"], "no_confirmer");
}

#[test]
fn input_beyond_a_type_is_refused_by_its_schema() {
    let divide = |b| depot(Pure, "work_divide").input(json!({"a": 1, "b": b})).check();
    for b in [json!(1_u64 << 31), json!(1.5), json!("1"), Value::Null] {
        let seen = divide(b);
        assert_eq!(seen.error("validation_error")["errors"][0]["pointer"], "/b");
    }
}

#[test]
fn rules_that_a_schema_does_not_say_are_checked_as_well() {
    let refused = |tool, input: Value| {
        let seen = depot(Pure, tool).input(input).check();
        assert_eq!(seen.kind(), "invalid-input");
        seen.message("execution_error").to_owned()
    };
    let most = u64::MAX;
    let seed = json!({"seed": "18446744073709551616"});
    let expected = format!("`/seed`: want an integer from 0 to {most}");
    assert_eq!(refused("work_draw", seed), expected);
    let message = refused("echo_same_bytes", json!({"data": "no Base64"}));
    assert!(message.starts_with("`/data`: want Base64"), "{message}");
}

#[test]
fn whole_number_in_any_form_is_an_integer() {
    let seen = depot(Pure, "work_divide").text(r#"{"a": 1e3, "b": 1.0e1}"#).check();
    assert_eq!(seen.output(), "100");
    let seed = |text: &str| depot(Pure, "work_draw").text(text).check().result["content"].clone();
    assert_eq!(seed(r#"{"seed": 7}"#), seed(r#"{"seed": "7"}"#));
}
