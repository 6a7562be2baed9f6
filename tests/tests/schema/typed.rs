//! The schema that the SDK derives from a type, and inputs against it.

use palisade_tests::guest::SCHEMA_TYPED;
use palisade_tests::{Case, Observed};
use serde_json::{Value, json};

fn call(input: Value) -> Observed {
    Case::new(SCHEMA_TYPED, "typed").input(input).check()
}

#[track_caller]
fn wrong(input: Value, pointer: &str) {
    let seen = call(input);
    assert_eq!(
        seen.error("validation_error")["errors"][0]["pointer"],
        pointer,
        "{:#}",
        seen.result
    );
}

#[test]
fn arguments_of_every_shape_make_a_round_trip() {
    let full = json!({"count": 9, "word": "abc", "tags": [{"kind": "red", "value": 0.5}], "map": {"a": -1}});
    let seen = call(full.clone());
    assert_eq!(seen.result["content"][0]["json"], full);
    let least = call(json!({"count": 1}));
    assert_eq!(
        least.result["content"][0]["json"],
        json!({"count": 1, "word": null, "tags": [], "map": {}})
    );
}

#[test]
fn type_bounds_apply_before_the_tool_runs() {
    wrong(json!({"count": 0}), "/count");
    wrong(json!({"count": 10}), "/count");
    wrong(json!({"count": "1"}), "/count");
    wrong(json!({"count": 1, "tags": [{"kind": "blue", "value": 1}]}), "/tags/0/kind");
    wrong(json!({"count": 1, "tags": [{"kind": "red"}]}), "/tags/0");
    wrong(json!({"count": 1, "map": {"a": 1.5}}), "/map/a");
    wrong(json!({"word": "abc"}), "");
}

#[test]
fn unknown_fields_are_ignored() {
    assert!(call(json!({"count": 1, "invented": true})).result["success"] == true);
}
