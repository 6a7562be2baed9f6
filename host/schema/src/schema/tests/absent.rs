//! Inputs in which a model writes null for a property that it leaves out.

use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

use crate::schema::drop_absent;

#[test]
fn null_is_dropped_for_absent_members_only() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"type": "string"}, "d": {"anyOf": [{"type": "null"}]},
        "l": {"items": {"$ref": "#/$defs/t"}}, "e": {"enum": ["x"]}, "f": {},
    }, "required": ["c"], "$defs": {"t": {"properties": {"n": {"type": "integer"}}}}});
    let mut input = json!({"a": null, "b": null, "c": null, "d": null, "e": null, "f": null, "l": [{"n": null}, 1], "other": null});
    drop_absent(&schema, &mut input);
    assert_eq!(
        input,
        json!({"b": null, "c": null, "d": null, "f": null, "l": [{}, 1], "other": null})
    );
}

#[test]
fn recursive_alternatives_are_judged_once() {
    let back = || json!({"$ref": "#/$defs/a"});
    let schema = json!({
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"anyOf": [{"type": "string", "anyOf": [back(), back(), back()]}, {"anyOf": [back(), back(), back()], "const": 1},
            {"type": "string", "oneOf": [{"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}], "type": "integer"}]}]},
            "b": {"oneOf": [{"type": "integer", "anyOf": [back(), back()]}, {"type": "string", "anyOf": [back(), back()]}]}},
    });
    let mut input = json!({"a": null});
    drop_absent(&schema, &mut input);
    assert_eq!(input, json!({}));
}

#[test]
fn time_is_linear_in_the_numbers_of_properties_and_required_names() {
    const COUNT: usize = 20_000;
    let named = |prefix: &str| (0..COUNT).map(move |n| format!("{prefix}{n}")).collect::<Vec<_>>();
    let properties: Map<String, Value> =
        named("p").into_iter().map(|name| (name, json!({"type": "string"}))).collect();
    let mut input: Value = named("p").into_iter().map(|name| (name, Value::Null)).collect();
    let schema = json!({"properties": properties, "required": named("r")});
    let begun = Instant::now();
    drop_absent(&schema, &mut input);
    // 400 million comparisons of names take seconds.
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(input, json!({}));
}
