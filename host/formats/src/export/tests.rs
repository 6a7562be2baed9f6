//! The export of single keywords in each format. An integration test of the workspace compares
//! whole definitions with golden files.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod portable;
mod references;
mod strict;

use serde_json::{Value, json};

use super::{Format, Strictness, annotations, export, export_all};
use crate::DefinitionView;

fn view(schema: &Value) -> DefinitionView<'_> {
    DefinitionView::new("mark", "Marks.", schema)
}

/// Returns an object schema with one required property `x`.
fn with_x(x: &Value) -> Value {
    json!({"type": "object", "properties": {"x": x}, "required": ["x"], "additionalProperties": false})
}

/// Exports the property `x`; returns its schema and the reported keywords.
fn of_x(x: &Value, format: Format, strictness: Strictness) -> (Value, Vec<String>) {
    let schema = with_x(x);
    let exported = export(&view(&schema), format, strictness);
    let weakened =
        exported.weakened.iter().map(|one| format!("{}@{}", one.keyword, one.pointer)).collect();
    (schema_of(&exported.tool).pointer("/properties/x").unwrap().clone(), weakened)
}

fn schema_of(tool: &Value) -> &Value {
    let places = [
        "/function/parameters",
        "/parameters",
        "/input_schema",
        "/parametersJsonSchema",
        "/inputSchema",
    ];
    places.into_iter().find_map(|place| tool.pointer(place)).unwrap()
}

#[test]
fn format_names_round_trip() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse::<Format>(), Ok(format));
    }
    assert!("OpenAI".parse::<Format>().unwrap_err().to_string().contains("openai-responses"));
}

#[test]
fn each_request_has_its_list_of_tools() {
    let schema = json!({"type": "object"});
    let views = [view(&schema), view(&schema)];
    let whole = |format| export_all(&views, format, Strictness::AsIs).0;
    assert_eq!(whole(Format::OpenAi).as_array().unwrap().len(), 2);
    assert_eq!(whole(Format::Anthropic)[1]["name"], "mark");
    assert_eq!(whole(Format::Gemini)[0]["functionDeclarations"].as_array().unwrap().len(), 2);
    assert_eq!(whole(Format::Mcp)["tools"].as_array().unwrap().len(), 2);
}

#[test]
fn tool_that_sends_requests_is_of_the_open_world() {
    let schema = json!({"type": "object"});
    for (sends_requests, is_open) in [(true, true), (false, false)] {
        let view = DefinitionView { side_effects: "read", sends_requests, ..view(&schema) };
        let hints = &export(&view, Format::Mcp, Strictness::AsIs).tool["annotations"];
        assert_eq!(hints["openWorldHint"], is_open);
        assert_eq!(hints["readOnlyHint"], true);
    }
}

#[test]
fn tool_that_calls_others_promises_nothing() {
    let schema = json!({"type": "object"});
    let view = DefinitionView { side_effects: "none", calls_tools: true, ..view(&schema) };
    let hints = &export(&view, Format::Mcp, Strictness::AsIs).tool["annotations"];
    let promised = ["readOnlyHint", "destructiveHint", "openWorldHint"].map(|hint| &hints[hint]);
    assert_eq!(promised, [false, true, true]);
}

#[test]
fn hints_follow_from_the_class() {
    let hints = |class, word| {
        let hints = annotations(class, word);
        ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
            .map(|hint| hints[hint].as_bool().unwrap())
    };
    assert_eq!(hints("none", true), [true, false, true, false]);
    assert_eq!(hints("read", false), [true, false, false, false]);
    assert_eq!(hints("write", false), [false, true, false, false]);
    assert_eq!(hints("execute", false), [false, true, false, true]);
    assert_eq!(hints("network", true), [false, true, true, true]);
    assert_eq!(hints("a class of tomorrow", false), [false, true, false, true]);
}

#[test]
fn workspace_path_format_becomes_a_sentence_unless_accepted() {
    let path = json!({"type": "string", "format": "workspace-path", "description": "The file."});
    let said =
        json!({"type": "string", "description": "The file. A path relative to the workspace."});
    assert_eq!(of_x(&path, Format::Anthropic, Strictness::AsIs), (path.clone(), vec![]));
    for format in [Format::OpenAi, Format::OpenAiResponses, Format::Gemini, Format::Mcp] {
        assert_eq!(
            of_x(&path, format, Strictness::AsIs),
            (said.clone(), vec!["format@/properties/x".to_owned()])
        );
    }
    assert_eq!(of_x(&path, Format::Anthropic, Strictness::Transform).0, said);
}

#[test]
fn mcp_exports_portable_schemas_unchanged() {
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "allOf": [{"not": {}}], "x-a": 1});
    let output = json!({"type": "integer"});
    let view =
        DefinitionView { title: Some("Mark"), output_schema: Some(&output), ..view(&schema) };
    let exported = export(&view, Format::Mcp, Strictness::Transform);
    assert_eq!(exported.weakened, []);
    assert_eq!(exported.tool["inputSchema"], schema);
    assert_eq!(
        (&exported.tool["outputSchema"], &exported.tool["title"]),
        (&output, &json!("Mark"))
    );
}

#[test]
fn lost_output_schema_is_reported() {
    let schema = json!({"type": "object"});
    let output = json!({});
    let view =
        DefinitionView { title: Some("Mark"), output_schema: Some(&output), ..view(&schema) };
    for format in [Format::OpenAi, Format::OpenAiResponses, Format::Anthropic, Format::Gemini] {
        let lost: Vec<String> = export(&view, format, Strictness::AsIs)
            .weakened
            .into_iter()
            .map(|one| one.keyword)
            .collect();
        assert_eq!(lost, ["outputSchema"], "a title is for people");
    }
}

#[test]
fn refused_root_alternatives_move_into_the_description() {
    let schema =
        json!({"type": "object", "anyOf": [{"required": ["a"]}], "description": "Either."});
    for format in [Format::OpenAi, Format::Anthropic] {
        let exported = export(&view(&schema), format, Strictness::AsIs);
        assert_eq!(
            schema_of(&exported.tool)["description"],
            "Either.\n\n{anyOf: [{\"required\":[\"a\"]}]}"
        );
        assert_eq!(exported.weakened.len(), 1);
    }
    assert_eq!(schema_of(&export(&view(&schema), Format::Gemini, Strictness::AsIs).tool), &schema);
}

#[test]
fn openai_always_gets_properties_and_items() {
    let schema = json!({"type": "object", "properties": {"l": {"type": "array"}}});
    assert_eq!(
        schema_of(&export(&view(&schema), Format::OpenAi, Strictness::AsIs).tool)["properties"]["l"]
            ["items"],
        json!({})
    );
    let nothing = json!({"type": "object"});
    assert_eq!(
        schema_of(&export(&view(&nothing), Format::OpenAi, Strictness::AsIs).tool)["properties"],
        json!({})
    );
}

#[test]
fn refused_property_names_are_reported() {
    let schema = json!({"type": "object", "properties": {"größe": {}, "a-b": {}}});
    let names = |format| {
        export(&view(&schema), format, Strictness::AsIs)
            .weakened
            .into_iter()
            .map(|one| one.pointer)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Format::Anthropic), ["/properties/größe"]);
    assert_eq!(names(Format::Gemini), ["/properties/a-b", "/properties/größe"]);
}
