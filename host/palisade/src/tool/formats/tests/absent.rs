//! Inputs in which a model writes null for a property that it leaves out.

use crate::tool::formats::drop_absent;
use serde_json::json;

#[test]
fn null_for_an_absent_value_is_removed() {
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
