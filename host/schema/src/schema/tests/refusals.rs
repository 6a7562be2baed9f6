//! Every refusal names the keyword, its position and the accepted alternative.

use serde_json::json;

use super::super::{MAX_SCHEMA, Schema, SchemaError};
use super::{refusal, with_x};
use crate::json::JsonError;

#[test]
fn input_schema_root_is_an_object() {
    for (schema, got) in [
        (json!({"type": "array"}), "\"array\""),
        (json!({"type": ["object", "null"]}), "[\"object\",\"null\"]"),
        (json!({"properties": {}}), "no `type`"),
        (json!(true), "boolean as the whole schema"),
        (json!(null), "null as the whole schema"),
        (json!([]), "array as the whole schema"),
    ] {
        assert_eq!(
            Schema::input(schema).unwrap_err(),
            SchemaError::RootNotObject { got: got.to_owned() }
        );
    }
    assert!(Schema::input(json!({"type": "object"})).is_ok());
}

#[test]
fn output_schema_root_may_be_any_schema() {
    for schema in [
        json!(true),
        json!(false),
        json!({}),
        json!({"type": "array"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": true}}),
    ] {
        assert!(Schema::output(schema).is_ok());
    }
    assert_eq!(
        refusal(json!(null)),
        SchemaError::NotASchema { pointer: String::new(), got: "null" }
    );
    let inside = refusal(json!({"properties": {"a": 3}}));
    assert_eq!(inside, SchemaError::NotASchema { pointer: "/properties/a".into(), got: "integer" });
}

#[test]
fn external_references_are_refused_and_not_followed() {
    for target in [
        "https://example.com/a.json",
        "file:///etc/passwd",
        "other.json#/a",
        "/a",
        "urn:a",
        "//host/share",
    ] {
        let SchemaError::Reference { pointer, target: named, .. } =
            refusal(with_x(json!({"$ref": target})))
        else {
            panic!("{target} was taken for something else");
        };
        assert_eq!((pointer.as_str(), named.as_str()), ("/properties/x/$ref", target));
    }
}

#[test]
fn references_target_subschemas_only() {
    for target in
        ["#/nowhere", "#/properties", "#/enum/0", "#/x-mine/a", "#nobody", "#/%zz", "#/%ff"]
    {
        let schema =
            json!({"properties": {"x": {"$ref": target}}, "enum": [{}], "x-mine": {"a": {}}});
        assert!(matches!(refusal(schema), SchemaError::Reference { .. }), "{target}");
    }
    for target in ["#", "#/$defs/a~1b%25", "#/properties/x/items", "#here", "#/definitions/old"] {
        let schema = json!({
            "properties": {"x": {"items": true}, "y": {"$ref": target}},
            "$defs": {"a/b%": {"$anchor": "here"}}, "definitions": {"old": {}},
        });
        assert!(Schema::output(schema).is_ok(), "{target}");
    }
}

#[test]
fn external_keywords_are_refused_with_their_place() {
    for (keyword, value) in [
        ("$dynamicRef", json!("#a")),
        ("$dynamicAnchor", json!("a")),
        ("$recursiveRef", json!("#")),
        ("$recursiveAnchor", json!(true)),
        ("$vocabulary", json!({})),
        ("$id", json!("http://example.com/x")),
    ] {
        let SchemaError::Keyword { keyword: named, pointer, .. } =
            refusal(with_x(json!({keyword: value})))
        else {
            panic!("{keyword} was taken for something else");
        };
        assert_eq!((named, pointer), (keyword, format!("/properties/x/{keyword}")));
    }
    let two = json!({"$defs": {"a": {"$anchor": "z"}, "b": {"$anchor": "z"}}});
    assert!(matches!(refusal(two), SchemaError::Keyword { keyword: "$anchor", .. }));
}

#[test]
fn root_may_have_an_id() {
    let schema = json!({"$id": "https://example.com/tool.json", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}});
    assert!(Schema::output(schema).unwrap().validate(&json!({"x": 1})).is_err());
}

#[test]
fn only_2020_12_and_draft_07_are_accepted_at_the_root() {
    for uri in [
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
    ] {
        assert!(Schema::output(json!({"$schema": uri})).is_ok(), "{uri}");
    }
    for uri in [
        json!("http://json-schema.org/draft-04/schema#"),
        json!("https://example.com/mine"),
        json!(7),
    ] {
        assert_eq!(
            refusal(json!({"$schema": uri})),
            SchemaError::Dialect { pointer: "/$schema".into() }
        );
    }
    let inside = with_x(json!({"$schema": "http://json-schema.org/draft-07/schema#"}));
    assert_eq!(refusal(inside), SchemaError::Dialect { pointer: "/properties/x/$schema".into() });
}

#[test]
fn draft_07_semantics_apply() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "pair": {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false},
            "alone": {"$ref": "#/definitions/text", "maxLength": 1},
            "modern": {"prefixItems": [{"type": "string"}], "dependentRequired": {"a": ["b"]}},
        },
        "dependencies": {"pair": ["alone"]},
        "definitions": {"text": {"type": "string"}},
    });
    let schema = Schema::output(schema).unwrap();
    assert!(schema.validate(&json!({"pair": ["a", 1], "alone": "long", "modern": [1]})).is_ok());
    assert!(schema.validate(&json!({"pair": ["a", 1, 2], "alone": "a"})).is_err());
    assert!(schema.validate(&json!({"pair": []})).is_err());
}

#[test]
fn superlinear_patterns_are_refused() {
    for pattern in [r"(a)\1", "(?=a)", "(?<!a)b", "(a{1000}){1000}", "(", "[z-a]"] {
        let SchemaError::Pattern { keyword, pointer, .. } =
            refusal(with_x(json!({"pattern": pattern})))
        else {
            panic!("{pattern} was taken for something else");
        };
        assert_eq!((keyword, pointer.as_str()), ("pattern", "/properties/x/pattern"));
    }
    let SchemaError::Pattern { keyword, pointer, .. } =
        refusal(json!({"patternProperties": {"(?=a)": {}}}))
    else {
        panic!("a pattern of names was taken for something else");
    };
    assert_eq!((keyword, pointer.as_str()), ("patternProperties", "/patternProperties/(?=a)"));
    assert!(
        Schema::output(json!({"pattern": "(a+)+$", "patternProperties": {"^x-": true}})).is_ok()
    );
}

#[test]
fn deceptive_names_are_refused() {
    for name in ["a\r\nb", "a\u{0}", "\u{202e}gpj", "zero\u{200b}width", &"n".repeat(257)] {
        let error = refusal(json!({"properties": {name: {}}}));
        assert!(matches!(error, SchemaError::Name { .. }), "{error}");
        assert!(!error.to_string().contains('\u{202e}'));
    }
    assert!(matches!(refusal(json!({"$defs": {"a\nb": {}}})), SchemaError::Name { .. }));
    assert!(Schema::output(json!({"properties": {"größe 大": {}, "$ref": {}}})).is_ok());
}

#[test]
fn header_annotation_is_one_token() {
    for header in [json!("X-A\r\nSet-Cookie: b"), json!(""), json!(3), json!("a b")] {
        let error = refusal(with_x(json!({"x-mcp-header": header})));
        assert!(matches!(error, SchemaError::Keyword { keyword: "x-mcp-header", .. }), "{error}");
    }
    assert!(Schema::output(with_x(json!({"x-mcp-header": "Region"}))).is_ok());
}

#[test]
fn keyword_of_a_wrong_type_is_refused_with_the_expected() {
    for (schema, pointer, accepted) in [
        (json!({"type": "strnig"}), "/type", "\"string\""),
        (
            json!({"properties": {"a": {"required": true}}}),
            "/properties/a/required",
            "an array of different strings",
        ),
        (json!({"minLength": -1}), "/minLength", "an integer from 0"),
        (json!({"items": [true]}), "/items", "`prefixItems`"),
        (json!({"properties": []}), "/properties", "an object of schemas"),
        (json!({"anyOf": []}), "/anyOf", "a nonempty array of schemas"),
        (json!({"$ref": 3}), "/$ref", "a string"),
    ] {
        let error = refusal(schema);
        let SchemaError::Malformed { pointer: named, .. } = &error else { panic!("{error}") };
        assert_eq!(named, pointer);
        assert!(error.to_string().contains(accepted), "{error}");
    }
}

#[test]
fn text_is_bounded_before_parsing() {
    let long = format!("{{\"title\":\"{}\"}}", "a".repeat(MAX_SCHEMA));
    assert!(matches!(
        Schema::parse_output(&long),
        Err(SchemaError::Text(JsonError::TooLong { .. }))
    ));
    let deep = format!("{}{{}}{}", "{\"not\":".repeat(32), "}".repeat(32));
    assert!(matches!(
        Schema::parse_output(&deep),
        Err(SchemaError::Text(JsonError::TooDeep { max: 32, .. }))
    ));
    let twice = r#"{"type":"object","type":"string"}"#;
    assert!(matches!(
        Schema::parse_input(twice),
        Err(SchemaError::Text(JsonError::DuplicateKey { .. }))
    ));
    assert!(Schema::parse_input(r#"{"type":"object"}"#).is_ok());
}

#[test]
fn value_meets_the_same_bounds_as_a_text() {
    let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"not": inner}));
    assert!(Schema::output(deep(15)).is_ok());
    assert!(matches!(
        refusal(deep(32)),
        SchemaError::TooMuch { what: "too many levels", max: 32, .. }
    ));
    let long = refusal(json!({"title": "a".repeat(MAX_SCHEMA)}));
    assert!(matches!(long, SchemaError::TooMuch { what: "too many bytes", .. }), "{long}");
}

#[test]
fn all_2020_12_assertions_and_applicators_are_accepted() {
    let all = r##"{
        "type": ["object", "array", "string", "number", "null"], "const": {}, "enum": [{}], "multipleOf": 2, "maximum": 3,
        "exclusiveMaximum": 4, "minimum": 1, "exclusiveMinimum": 0, "maxLength": 3, "minLength": 0, "pattern": "^a",
        "maxItems": 3, "minItems": 0, "uniqueItems": true, "maxContains": 2, "minContains": 0, "maxProperties": 3,
        "minProperties": 0, "required": [], "dependentRequired": {"a": ["b"]}, "allOf": [true], "anyOf": [true], "oneOf": [true],
        "not": false, "if": true, "then": true, "else": true, "dependentSchemas": {"a": true}, "prefixItems": [true],
        "items": true, "contains": true, "properties": {"a": true}, "patternProperties": {"^b": true},
        "additionalProperties": true, "propertyNames": true, "unevaluatedItems": true, "unevaluatedProperties": true,
        "$ref": "#/$defs/a", "$defs": {"a": true}, "$anchor": "here", "$comment": "c", "title": "t", "description": "d",
        "default": 1, "deprecated": false, "readOnly": false, "writeOnly": false, "examples": [], "format": "date",
        "contentEncoding": "base64", "contentMediaType": "text/plain", "contentSchema": true, "x-mine": {"$ref": "http://nowhere"}
    }"##;
    assert!(Schema::parse_output(all).is_ok());
}
