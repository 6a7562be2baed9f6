//! The export of single keywords in each format. An integration test of the workspace compares
//! whole definitions with golden files.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::{Map, Value, json};

use super::{Format, Strictness, ToolView, annotations, drop_absent, export, export_all};

fn view(schema: &Value) -> ToolView<'_> {
    ToolView {
        name: "mark",
        title: None,
        description: "Marks.",
        input_schema: schema,
        output_schema: None,
        side_effects: "read",
        idempotent: true,
    }
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

fn strict(schema: &Value, strictness: Strictness) -> bool {
    export(&view(schema), Format::OpenAiResponses, strictness).tool["strict"] == true
}

#[test]
fn a_format_is_read_from_the_name_that_it_prints() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse::<Format>(), Ok(format));
    }
    assert!("OpenAI".parse::<Format>().unwrap_err().to_string().contains("openai-responses"));
}

#[test]
fn each_whole_export_is_what_its_request_takes() {
    let schema = json!({"type": "object"});
    let views = [view(&schema), view(&schema)];
    let whole = |format| export_all(&views, format, Strictness::AsIs).0;
    assert_eq!(whole(Format::OpenAi).as_array().unwrap().len(), 2);
    assert_eq!(whole(Format::Anthropic)[1]["name"], "mark");
    assert_eq!(whole(Format::Gemini)[0]["functionDeclarations"].as_array().unwrap().len(), 2);
    assert_eq!(whole(Format::Mcp)["tools"].as_array().unwrap().len(), 2);
}

#[test]
fn hints_follow_from_the_class_and_only_idempotence_is_believed() {
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
fn a_workspace_path_stays_a_format_where_formats_are_free_and_becomes_a_sentence_elsewhere() {
    let path = json!({"type": "string", "format": "workspace-path", "description": "The file."});
    let said =
        json!({"type": "string", "description": "The file. A path relative to the workspace."});
    for format in [Format::Mcp, Format::Anthropic] {
        assert_eq!(of_x(&path, format, Strictness::AsIs), (path.clone(), vec![]));
    }
    for format in [Format::OpenAi, Format::OpenAiResponses, Format::Gemini] {
        assert_eq!(
            of_x(&path, format, Strictness::AsIs),
            (said.clone(), vec!["format@/properties/x".to_owned()])
        );
    }
    assert_eq!(of_x(&path, Format::Anthropic, Strictness::Transform).0, said);
}

#[test]
fn mcp_carries_everything_as_it_is() {
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "allOf": [{"not": {}}], "x-a": 1});
    let output = json!({"type": "integer"});
    let view = ToolView { title: Some("Mark"), output_schema: Some(&output), ..view(&schema) };
    let exported = export(&view, Format::Mcp, Strictness::Transform);
    assert_eq!(exported.weakened, []);
    assert_eq!(exported.tool["inputSchema"], schema);
    assert_eq!(
        (&exported.tool["outputSchema"], &exported.tool["title"]),
        (&output, &json!("Mark"))
    );
}

#[test]
fn what_a_format_has_no_place_for_is_reported() {
    let (schema, output) = (json!({"type": "object"}), json!({}));
    let view = ToolView { title: Some("Mark"), output_schema: Some(&output), ..view(&schema) };
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
fn alternatives_at_the_root_move_into_the_description_where_they_are_refused() {
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
fn openai_hears_of_properties_and_items_even_where_there_is_nothing_to_say() {
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
fn an_openai_tool_is_strict_as_it_is_only_if_it_conforms() {
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
fn what_strict_modes_do_not_read_becomes_a_note() {
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
fn exclusive_alternatives_become_alternatives() {
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
fn anthropic_reads_a_lower_bound_of_one_element() {
    let x = |min: u64| json!({"type": "array", "items": {"type": "string"}, "minItems": min});
    assert_eq!(of_x(&x(1), Format::Anthropic, Strictness::Transform), (x(1), vec![]));
    assert_eq!(of_x(&x(2), Format::Anthropic, Strictness::Transform).1, ["minItems@/properties/x"]);
}

#[test]
fn every_optional_property_becomes_required_and_may_be_null() {
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
fn an_object_that_lives_from_unlisted_members_is_never_closed() {
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
fn references_are_written_out_where_something_stands_beside_them() {
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
fn a_recursive_schema_is_strict_where_the_provider_takes_one() {
    let schema = json!({
        "type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}, "required": ["t"],
        "$defs": {"t": {"type": "object", "properties": {"next": {"$ref": "#/$defs/t", "description": "More."}}, "required": ["next"]}},
    });
    let openai = export(&view(&schema), Format::OpenAi, Strictness::Transform);
    assert_eq!(openai.tool["function"]["strict"], true);
    assert_eq!(openai.weakened[0].keyword, "description");
    let anthropic = export(&view(&schema), Format::Anthropic, Strictness::Transform);
    assert_eq!((anthropic.tool.get("strict"), &anthropic.tool["input_schema"]), (None, &schema));
    assert!(anthropic.weakened[0].what.contains("recursive"));
}

#[test]
fn parts_that_all_apply_are_merged_where_they_can_be_and_noted_where_not() {
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
fn older_definitions_move_to_where_providers_look() {
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
fn references_that_expand_a_schema_are_written_out_within_a_budget() {
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
fn limits_of_strict_mode_are_kept() {
    let deep = (0..11).fold(json!({"type": "string"}), |inner, _| with_x(&inner));
    assert!(!strict(&deep, Strictness::AsIs));
    assert!(strict(&with_x(&with_x(&json!({"type": "string"}))), Strictness::AsIs));
    let long: Vec<String> = (0..1001).map(|at| format!("v{at}")).collect();
    assert!(!strict(&with_x(&json!({"type": "string", "enum": long})), Strictness::AsIs));
    assert!(strict(&with_x(&json!({"type": "string", "enum": long[..1000]})), Strictness::AsIs));
}

#[test]
fn a_property_name_that_a_provider_may_refuse_is_reported() {
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

#[test]
fn a_long_value_is_cut_in_a_note() {
    let x = json!({"type": "string", "default": "d".repeat(5000)});
    let (written, _) = of_x(&x, Format::OpenAi, Strictness::Transform);
    assert!(written["description"].as_str().unwrap().len() < 400);
}

#[test]
fn null_for_what_is_absent_is_taken_back_and_other_nulls_are_not() {
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
fn alternatives_that_lead_back_to_themselves_are_judged_once() {
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
