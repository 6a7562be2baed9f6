//! Strict mode: the schemas that are strict as they are, and the changes that make others strict.

use super::{of_x, schema_of, view, with_x};
use crate::tool::formats::{Format, Strictness, export};
use serde_json::{Value, json};

fn strict(schema: &Value, strictness: Strictness) -> bool {
    export(&view(schema), Format::OpenAiResponses, strictness).tool["strict"] == true
}

#[test]
fn strict_requires_a_conforming_openai_schema() {
    assert!(strict(
        &with_x(&json!({"type": "string", "enum": ["a"], "description": "d"})),
        Strictness::AsIs
    ));
    assert!(strict(
        &with_x(&json!({"type": "string", "format": "workspace-path"})),
        Strictness::AsIs
    ));
    for x in [
        json!({"type": "string", "minLength": 1}),
        json!({"type": "string", "format": "uri"}),
        json!({"oneOf": [{"type": "string"}]}),
        json!({}),
        json!(true),
        json!({"type": "array"}),
        json!({"type": "array", "items": [{"type": "string"}]}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"y": {"type": "string"}}, "additionalProperties": false}),
        json!({"type": "string", "default": "a"}),
    ] {
        assert!(!strict(&with_x(&x), Strictness::AsIs), "{x}");
    }
    assert!(!strict(&json!({"type": "object", "properties": {}}), Strictness::AsIs));
}

#[test]
fn unsupported_keywords_become_notes() {
    let x = json!({"type": "string", "minLength": 1, "maxLength": 9, "default": "a", "description": "A word."});
    let (openai, weakened) = of_x(&x, Format::OpenAi, Strictness::Transform);
    assert_eq!(
        openai,
        json!({"type": "string", "description": "A word.\n\n{default: \"a\", maxLength: 9, minLength: 1}"})
    );
    assert_eq!(
        weakened,
        ["default@/properties/x", "maxLength@/properties/x", "minLength@/properties/x"]
    );
    let number = json!({"type": "integer", "minimum": 1, "maximum": 10});
    assert_eq!(of_x(&number, Format::OpenAi, Strictness::Transform), (number.clone(), vec![]));
    let (anthropic, _) = of_x(&number, Format::Anthropic, Strictness::Transform);
    assert_eq!(anthropic, json!({"type": "integer", "description": "{maximum: 10, minimum: 1}"}));
}

#[test]
fn one_of_becomes_any_of() {
    let x = json!({"oneOf": [{"type": "string"}, {"const": 1}]});
    let any = json!({"anyOf": [{"type": "string"}, {"const": 1}]});
    for format in [Format::OpenAi, Format::Anthropic] {
        assert_eq!(
            of_x(&x, format, Strictness::Transform),
            (any.clone(), vec!["oneOf@/properties/x".to_owned()])
        );
    }
    assert_eq!(
        of_x(&x, Format::Gemini, Strictness::Transform).0,
        json!({"oneOf": [{"type": "string"}, {"enum": [1]}]})
    );
}

#[test]
fn anthropic_supports_min_items_of_one() {
    let x = |min: u64| json!({"type": "array", "items": {"type": "string"}, "minItems": min});
    assert_eq!(of_x(&x(1), Format::Anthropic, Strictness::Transform), (x(1), vec![]));
    assert_eq!(of_x(&x(2), Format::Anthropic, Strictness::Transform).1, ["minItems@/properties/x"]);
}

#[test]
fn optional_property_becomes_required_and_nullable() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"type": "string", "enum": ["x"]},
        "d": {"$ref": "#/$defs/t"}, "e": {"anyOf": [{"type": "string"}]}, "f": {"const": 1, "description": "One."},
    }, "$defs": {"t": {"type": "string"}}});
    let exported = export(&view(&schema), Format::OpenAi, Strictness::Transform);
    assert_eq!(exported.tool["function"]["strict"], true, "{:?}", exported.weakened);
    let written = schema_of(&exported.tool);
    assert_eq!(written["required"], json!(["a", "b", "c", "d", "e", "f"]));
    assert_eq!(written["additionalProperties"], false);
    assert_eq!(
        written["properties"],
        json!({
            "a": {"type": ["string", "null"]}, "b": {"type": ["string", "null"]}, "c": {"type": ["string", "null"], "enum": ["x", null]},
            "d": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}, "e": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "f": {"anyOf": [{"const": 1}, {"type": "null"}], "description": "One."},
        })
    );
    assert_eq!(exported.weakened.len(), 6);
    assert_eq!(exported.weakened[0].pointer, "/properties/a");
}

#[test]
fn open_object_is_never_closed() {
    for x in [
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {}, "patternProperties": {"^a": {"type": "string"}}}),
    ] {
        for format in [Format::OpenAi, Format::Anthropic] {
            let schema = with_x(&x);
            let exported = export(&view(&schema), format, Strictness::Transform);
            assert_ne!(exported.tool["strict"], true);
            assert_eq!(
                schema_of(&exported.tool).pointer("/properties/x/additionalProperties"),
                x.get("additionalProperties")
            );
            let last = exported.weakened.last().unwrap();
            assert_eq!((last.keyword.as_str(), last.pointer.as_str()), ("strict", "/properties/x"));
        }
    }
}

#[test]
fn strict_mode_limits_are_kept() {
    let deep = (0..11).fold(json!({"type": "string"}), |inner, _| with_x(&inner));
    assert!(!strict(&deep, Strictness::AsIs));
    assert!(strict(&with_x(&with_x(&json!({"type": "string"}))), Strictness::AsIs));
    let long: Vec<String> = (0..1001).map(|at| format!("v{at}")).collect();
    assert!(!strict(&with_x(&json!({"type": "string", "enum": long})), Strictness::AsIs));
    assert!(strict(&with_x(&json!({"type": "string", "enum": long[..1000]})), Strictness::AsIs));
}

#[test]
fn long_value_is_cut_in_a_note() {
    let x = json!({"type": "string", "default": "d".repeat(5000)});
    let (written, _) = of_x(&x, Format::OpenAi, Strictness::Transform);
    assert!(written["description"].as_str().unwrap().len() < 400);
}
