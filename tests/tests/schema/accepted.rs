//! Accepted schemas: every assertion and applicator of 2020-12, local references, draft-07.

use serde_json::{Value, json};

use super::reasons;

#[track_caller]
fn all_accepted(schemas: &[Value]) {
    for (schema, reason) in schemas.iter().zip(reasons(schemas)) {
        assert_eq!(reason, "", "{schema}");
    }
}

/// Returns an object schema with one property of this schema.
fn property(schema: Value) -> Value {
    json!({"type": "object", "properties": {"p": schema}})
}

#[test]
fn every_assertion_is_accepted() {
    let assertions = [
        json!({"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$"}),
        json!({"type": ["integer", "null"], "minimum": 0, "maximum": 9, "multipleOf": 3}),
        json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        json!({"type": "array", "minItems": 1, "maxItems": 3, "uniqueItems": true}),
        json!({"type": "object", "minProperties": 1, "maxProperties": 2, "required": ["a"]}),
        json!({"enum": ["a", 1, null]}),
        json!({"const": {"a": [1]}}),
        json!({"dependentRequired": {"a": ["b"]}}),
        json!({"contains": {"type": "string"}, "minContains": 1, "maxContains": 2}),
    ];
    all_accepted(&assertions.map(property));
}

#[test]
fn every_applicator_is_accepted() {
    let string = || json!({"type": "string"});
    let applicators = [
        json!({"allOf": [string()]}),
        json!({"anyOf": [string(), {"type": "null"}]}),
        json!({"oneOf": [string(), {"type": "integer"}]}),
        json!({"not": string()}),
        json!({"if": string(), "then": {"minLength": 1}, "else": {"type": "integer"}}),
        json!({"items": string(), "prefixItems": [string()]}),
        json!({"additionalProperties": string(), "patternProperties": {"^x": string()}, "propertyNames": {"maxLength": 3}}),
        json!({"dependentSchemas": {"a": {"required": ["b"]}}}),
        json!({"unevaluatedProperties": false, "unevaluatedItems": false}),
        json!(true),
        json!(false),
    ];
    all_accepted(&applicators.map(property));
}

#[test]
fn annotations_are_accepted_without_effect() {
    let annotated = property(json!({
        "title": "A title", "description": "A text.", "default": 1, "examples": [1], "deprecated": true, "readOnly": true,
        "$comment": "none", "format": "email", "contentEncoding": "base64", "contentMediaType": "text/plain",
    }));
    all_accepted(&[annotated]);
}

#[test]
fn recursive_local_references_are_accepted() {
    all_accepted(&[
        json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/d"}}, "$defs": {"d": {"type": "string"}}}),
        json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/tree"}},
               "$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}}}}),
        json!({"type": "object", "properties": {"p": {"$ref": "#"}}}),
    ]);
}

#[test]
fn both_dialects_are_accepted() {
    all_accepted(&[
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
               "definitions": {"d": {"type": "string"}}, "properties": {"p": {"$ref": "#/definitions/d"}}}),
    ]);
}

#[test]
fn path_argument_is_accepted_at_known_places() {
    let path = || json!({"type": "string", "format": "workspace-path"});
    all_accepted(&[
        property(path()),
        property(json!({"type": "array", "items": path()})),
        property(json!({"type": "object", "properties": {"deep": path()}})),
        json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/path"}}, "$defs": {"path": path()}}),
    ]);
}
