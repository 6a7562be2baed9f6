//! The portable form: one type per subschema, optional members instead of `null`, and the words of
//! the workspace's format.

use serde_json::{Value, json};

use super::super::{Format, Strictness, export};
use super::{of_x, schema_of, view};
use crate::DefinitionView;

/// Exports an optional property `x` to MCP; returns its schema and the reported keywords.
fn optional(x: &Value) -> (Value, Vec<String>) {
    let schema = json!({"type": "object", "properties": {"x": x}});
    let exported = export(&view(&schema), Format::Mcp, Strictness::AsIs);
    let weakened = exported.weakened.iter().map(ToString::to_string).collect();
    (schema_of(&exported.tool)["properties"]["x"].clone(), weakened)
}

/// Exports a required property `x` to MCP, without a report.
fn required(x: &Value) -> Value {
    let (schema, weakened) = of_x(x, Format::Mcp, Strictness::AsIs);
    assert!(weakened.is_empty(), "{weakened:?}");
    schema
}

#[test]
fn optional_member_loses_null_and_the_report_names_it() {
    let text = json!({"type": "string"});
    for (written, listed) in [
        (json!({"type": ["string", "null"]}), text.clone()),
        (json!({"type": ["string", "null"], "default": null}), text.clone()),
        (
            json!({"type": ["string", "null"], "default": "a"}),
            json!({"type": "string", "default": "a"}),
        ),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}), text.clone()),
        (json!({"oneOf": [{"const": null}, {"type": "string"}]}), text),
        (
            json!({"anyOf": [{"type": "string", "description": "In."}, {"type": "null"}], "description": "Out."}),
            json!({"type": "string", "description": "Out."}),
        ),
        (
            json!({"type": ["string", "null"], "enum": ["a", "b", null]}),
            json!({"type": "string", "enum": ["a", "b"]}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ),
        (
            json!({"anyOf": [{"minimum": 1}, {"type": "null"}], "minimum": 2}),
            json!({"anyOf": [{"minimum": 1}], "minimum": 2}),
        ),
        (
            json!({"type": ["integer", "string", "null"], "minimum": 0}),
            json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "minimum": 0}),
        ),
    ] {
        let report = "mark: `type` at `/properties/x` loses `null`: the member is left out instead";
        assert_eq!(optional(&written), (listed, vec![report.to_owned()]), "{written}");
    }
}

#[test]
fn optional_member_of_null_alone_is_kept() {
    for kept in [
        json!({"type": "null"}),
        json!({"const": null}),
        json!({"enum": [null]}),
        json!({"type": "string"}),
        json!({"$ref": "#/$defs/nothing"}),
        json!(true),
    ] {
        assert_eq!(optional(&kept), (kept.clone(), vec![]));
    }
    let split = optional(&json!({"type": ["string", "null"], "enum": [null]}));
    assert_eq!(split, (json!({"anyOf": [{"type": "null"}]}), vec![]));
}

#[test]
fn required_null_and_lists_of_types_become_alternatives() {
    for (written, listed) in [
        (json!({"type": ["string"]}), json!({"type": "string"})),
        (
            json!({"type": ["string", "null"], "minLength": 1}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "minLength": 1}),
        ),
        (
            json!({"type": ["string", "integer", "null"], "enum": ["a", 1, null]}),
            json!({"anyOf": [
                {"type": "string", "enum": ["a"]},
                {"type": "integer", "enum": [1]},
                {"type": "null"},
            ]}),
        ),
        (
            json!({"type": ["string", "integer"], "anyOf": [{"minLength": 1}]}),
            json!({
                "anyOf": [{"minLength": 1}],
                "allOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}],
            }),
        ),
        (
            json!({"type": "array", "items": {"type": ["string", "null"]}}),
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}),
        ),
    ] {
        assert_eq!(required(&written), listed, "{written}");
    }
}

#[test]
fn nested_members_and_definitions_are_portable_too() {
    let inner = json!({"type": "object", "properties": {"y": {"type": ["number", "null"]}}});
    let listed = json!({"type": "object", "properties": {"y": {"type": "number"}}});
    let (schema, weakened) =
        of_x(&json!({"type": "array", "items": inner}), Format::Mcp, Strictness::AsIs);
    assert_eq!(schema, json!({"type": "array", "items": listed}));
    assert_eq!(weakened, ["type@/properties/x/items/properties/y"]);
    let whole = json!({"type": "object", "$defs": {"a": inner}, "definitions": {"b": inner}});
    let exported = export(&view(&whole), Format::Mcp, Strictness::AsIs);
    assert_eq!(
        schema_of(&exported.tool),
        &json!({"type": "object", "$defs": {"a": listed}, "definitions": {"b": listed}})
    );
}

#[test]
fn output_schema_keeps_null_in_a_portable_form() {
    let schema = json!({"type": "object"});
    let output = json!({"type": "object", "properties": {
        "x": {"type": ["string", "null"]},
        "path": {"type": "string", "format": "workspace-path"},
    }});
    let view = DefinitionView { output_schema: Some(&output), ..view(&schema) };
    let exported = export(&view, Format::Mcp, Strictness::AsIs);
    let listed = json!({"type": "object", "properties": {
        "x": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "path": {"type": "string", "description": "A path relative to the workspace."},
    }});
    assert_eq!((&exported.tool["outputSchema"], exported.weakened), (&listed, vec![]));
}

#[test]
fn description_that_names_the_workspace_is_kept() {
    let path = json!({"type": "string", "format": "workspace-path", "description": "A file of the Workspace."});
    let listed = json!({"type": "string", "description": "A file of the Workspace."});
    for format in [Format::OpenAi, Format::OpenAiResponses, Format::Gemini, Format::Mcp] {
        assert_eq!(of_x(&path, format, Strictness::AsIs), (listed.clone(), vec![]), "{format}");
    }
}

#[test]
fn use_of_a_path_is_in_no_export() {
    let path = json!({"type": "string", "format": "workspace-path", "x-access": "read"});
    for format in Format::ALL {
        for strictness in [Strictness::AsIs, Strictness::Transform] {
            let (listed, weakened) = of_x(&path, format, strictness);
            assert_eq!(listed.get("x-access"), None, "{format}");
            assert!(weakened.iter().all(|change| !change.starts_with("x-access")), "{weakened:?}");
        }
    }
}
