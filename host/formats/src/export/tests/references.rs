//! References and `allOf` in an export: written out, merged or moved, within a budget.

use super::{of_x, schema_of, view};
use crate::export::{Format, Strictness, export};
use serde_json::{Map, Value, json};

#[test]
fn references_with_siblings_are_inlined() {
    let schema = json!({
        "type": "object", "properties": {"x": {"$ref": "#/$defs/t", "description": "Mine."}}, "required": ["x"],
        "$defs": {"t": {"type": "string", "description": "Theirs."}},
    });
    for format in [Format::OpenAi, Format::Anthropic, Format::Gemini] {
        let exported = export(&view(&schema), format, Strictness::Transform);
        assert_eq!(
            schema_of(&exported.tool)["properties"]["x"],
            json!({"type": "string", "description": "Mine."})
        );
        assert_eq!(exported.weakened, []);
    }
}

#[test]
fn recursive_schemas_are_strict_for_openai_only() {
    let schema = json!({
        "type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}, "required": ["t"],
        "$defs": {"t": {"type": "object", "properties": {"next": {"$ref": "#/$defs/t", "description": "More."}}, "required": ["next"]}},
    });
    let openai = export(&view(&schema), Format::OpenAi, Strictness::Transform);
    assert_eq!(openai.tool["function"]["strict"], true);
    assert_eq!(openai.weakened[0].keyword, "description");
    let anthropic = export(&view(&schema), Format::Anthropic, Strictness::Transform);
    assert_eq!((anthropic.tool.get("strict"), &anthropic.tool["input_schema"]), (None, &schema));
    assert!(anthropic.weakened[0].effect.contains("recursive"));
}

#[test]
fn all_of_is_merged_or_becomes_a_note() {
    let x = json!({"allOf": [{"type": "string"}, {"description": "d"}]});
    assert_eq!(
        of_x(&x, Format::OpenAi, Strictness::Transform),
        (json!({"type": "string", "description": "d"}), vec![])
    );
    let x = json!({"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}]});
    let (written, weakened) = of_x(&x, Format::OpenAi, Strictness::Transform);
    assert_eq!(written["description"], "{allOf: [{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}");
    assert_eq!(weakened, ["allOf@/properties/x"]);
}

#[test]
fn definitions_move_to_defs() {
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/definitions/t"}}, "required": ["x"], "definitions": {"t": {"type": "string"}}});
    let written = export(&view(&schema), Format::OpenAi, Strictness::Transform).tool;
    assert_eq!(schema_of(&written)["properties"]["x"], json!({"$ref": "#/$defs/t"}));
    assert_eq!(written["function"]["strict"], true);
    let data = json!({"enum": [{"$ref": "#/definitions/t"}]});
    let schema = json!({"type": "object", "properties": {"x": data}, "definitions": {"t": {"type": "string"}}});
    let written = export(&view(&schema), Format::Anthropic, Strictness::AsIs).tool;
    assert_eq!(
        written["input_schema"]["properties"]["x"], data,
        "a `$ref` in data is no reference"
    );
}

#[test]
fn exponential_references_are_inlined_within_a_budget() {
    let reference = |to: usize| json!({"$ref": format!("#/$defs/a{to}"), "description": "x"});
    let two = |to: usize| json!({"type": "object", "properties": {"l": reference(to), "r": reference(to)}});
    let mut definitions: Map<String, Value> =
        (0..40).map(|n| (format!("a{n}"), two(n + 1))).collect();
    definitions.insert("a40".to_owned(), json!({"type": "string"}));
    let wide = json!({"type": "object", "properties": {}, "$defs": definitions});
    let one = |to: usize| json!({"type": "object", "properties": {"n": reference(to)}});
    let mut definitions: Map<String, Value> =
        (0..900).map(|n| (format!("a{n}"), one(n + 1))).collect();
    definitions.insert("a900".to_owned(), json!({"type": "string"}));
    let deep = json!({"type": "object", "properties": {"x": reference(0)}, "$defs": definitions});
    for schema in [wide, deep] {
        for format in [Format::OpenAi, Format::Anthropic, Format::Gemini] {
            let exported = export(&view(&schema), format, Strictness::Transform);
            let bytes = exported.tool.to_string().len();
            assert!(bytes < 64 << 20, "{format:?}: {} MiB", bytes >> 20);
            assert!(!exported.weakened.is_empty(), "{format:?}");
        }
    }
}

#[test]
fn long_text_with_many_references_is_inlined_within_a_budget() {
    let reference = json!({"$ref": "#/$defs/big", "description": "d"});
    let properties: Map<String, Value> =
        (0..1_500).map(|n| (format!("a{n}"), reference.clone())).collect();
    for big in [json!({"const": "x".repeat(180_000)}), json!({"enum": [{"x".repeat(180_000): 0}]})]
    {
        let schema = json!({"type": "object", "properties": properties, "$defs": {"big": big}});
        for format in [Format::OpenAi, Format::OpenAiResponses, Format::Anthropic, Format::Gemini] {
            let exported = export(&view(&schema), format, Strictness::Transform);
            let bytes = exported.tool.to_string().len();
            assert!(bytes < 32 << 20, "{format:?}: {} MiB", bytes >> 20);
        }
    }
}
