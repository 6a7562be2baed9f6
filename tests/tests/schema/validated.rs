//! Input validation through the whole pipeline: nothing runs with an invalid input.

use palisade_tests::Observed;
use serde_json::{Value, json};

use super::call;

/// Checks that an input is rejected before anything runs, with these places and a reason for each.
#[track_caller]
fn refused(schema: &Value, input: &str, places: &[&str]) -> Observed {
    let seen = call(schema, input).check();
    let errors = seen.error("validation_error")["errors"].as_array().unwrap().clone();
    let found: Vec<&str> = errors.iter().map(|error| error["pointer"].as_str().unwrap()).collect();
    assert_eq!(found, places, "{errors:?}");
    assert!(errors.iter().all(|error| !error["reason"].as_str().unwrap().is_empty()));
    assert_eq!(
        seen.events.iter().map(palisade::events::Event::name).collect::<Vec<_>>(),
        ["tool.input_invalid"]
    );
    seen
}

#[track_caller]
fn accepted(schema: &Value, input: &str) {
    assert_eq!(call(schema, input).check().output(), "done", "{input}");
}

fn person() -> Value {
    json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    }})
}

#[test]
fn conforming_input_runs() {
    accepted(&person(), r#"{"name": "Ada", "age": 36, "tags": ["a"]}"#);
    accepted(&person(), r#"{"name": "Ada", "more": "than asked for"}"#);
    accepted(&person(), r#"{"name": "Ada", "age": 36.0}"#);
}

#[test]
fn each_wrong_field_is_named_with_its_reason() {
    refused(
        &person(),
        r#"{"name": "", "age": -1, "tags": ["a", 2]}"#,
        &["/age", "/name", "/tags/1"],
    );
    let seen = refused(&person(), r#"{"name": "Ada", "age": 151}"#, &["/age"]);
    assert!(seen.message("validation_error").contains("150"), "{:#}", seen.result);
    assert_eq!(seen.result["error"]["is_recoverable"], true);
}

#[test]
fn missing_field_is_named() {
    let seen = refused(&person(), "{}", &[""]);
    assert!(seen.message("validation_error").contains("name"), "{:#}", seen.result);
}

#[test]
fn at_most_ten_errors_are_listed() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let input: serde_json::Map<String, Value> =
        (0..50).map(|number| (format!("p{number:02}"), json!(1))).collect();
    let seen = call(&schema, &Value::Object(input).to_string()).check();
    assert_eq!(seen.error("validation_error")["errors"].as_array().unwrap().len(), 10);
}

#[test]
fn invalid_json_is_refused_with_line_and_column() {
    for (input, part) in
        [("{\"name\": \n", "line 2"), ("", "line 1"), ("{} {}", "line 1"), ("{'a': 1}", "column 2")]
    {
        let seen = refused(&person(), input, &[""]);
        assert!(seen.message("validation_error").contains(part), "{input:?}: {:#}", seen.result);
    }
}

#[test]
fn non_object_is_refused() {
    for input in ["[]", "1", "\"name\"", "null", "true"] {
        refused(&person(), input, &[""]);
    }
}

#[test]
fn duplicate_key_is_refused() {
    let seen = refused(&person(), r#"{"name": "Ada", "name": "Eve"}"#, &[""]);
    assert!(seen.message("validation_error").contains("twice"), "{:#}", seen.result);
}

#[test]
fn too_large_or_deep_input_is_refused() {
    let any = json!({"type": "object"});
    let large = format!("{{\"x\": \"{}\"}}", "x".repeat(1 << 20));
    assert!(refused(&any, &large, &[""]).message("validation_error").contains("1048576"));
    let deep = format!("{{\"x\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    assert!(refused(&any, &deep, &[""]).message("validation_error").contains("64"));
}

#[test]
fn backtracking_pattern_runs_in_linear_time() {
    let schema = json!({"type": "object", "properties": {"p": {"pattern": "^(a+)+$"}}});
    refused(&schema, &json!({"p": format!("{}!", "a".repeat(100_000))}).to_string(), &["/p"]);
}

#[test]
fn combinations_follow_json_schema() {
    let either = json!({"type": "object", "properties": {"p": {"oneOf": [{"type": "integer"}, {"minimum": 2}]}}});
    accepted(&either, r#"{"p": 1}"#);
    accepted(&either, r#"{"p": 2.5}"#);
    refused(&either, r#"{"p": 3}"#, &["/p"]);
    let tree = json!({"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}, "$defs": {"t": {
        "type": "object", "properties": {"v": {"type": "integer"}, "l": {"$ref": "#/$defs/t"}}}}});
    accepted(&tree, r#"{"t": {"v": 1, "l": {"l": {"v": 2}}}}"#);
    refused(&tree, r#"{"t": {"l": {"l": {"v": "2"}}}}"#, &["/t/l/l/v"]);
}

#[test]
fn draft_07_is_validated_as_such() {
    let tuple = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"p": {"type": "array", "items": [{"type": "integer"}], "additionalItems": false}}});
    accepted(&tuple, r#"{"p": [1]}"#);
    let seen = call(&tuple, r#"{"p": [1, 2]}"#).check();
    assert_eq!(seen.error("validation_error")["errors"][0]["pointer"], "/p");
}

#[test]
fn format_is_an_annotation() {
    let schema =
        json!({"type": "object", "properties": {"p": {"type": "string", "format": "email"}}});
    accepted(&schema, r#"{"p": "not an address"}"#);
}

#[test]
fn key_is_escaped_in_its_pointer() {
    let schema = json!({"type": "object", "properties": {"a/b~c": {"type": "string"}}});
    refused(&schema, r#"{"a/b~c": 1}"#, &["/a~1b~0c"]);
}
