//! Schemas that are refused when their plugin is loaded, with the keyword and the place.

use serde_json::{Value, json};

use super::reasons;

/// Checks that each schema is refused, and that the reason contains each of these parts.
#[track_caller]
fn all_refused(cases: &[(Value, &[&str])]) {
    let schemas: Vec<Value> = cases.iter().map(|(schema, _)| schema.clone()).collect();
    for ((schema, parts), reason) in cases.iter().zip(reasons(&schemas)) {
        assert!(reason.contains("the input schema is refused"), "{schema}: {reason:?}");
        for part in *parts {
            assert!(reason.contains(part), "{schema}: the reason does not say {part:?}: {reason}");
        }
    }
}

fn property(schema: Value) -> Value {
    json!({"type": "object", "properties": {"p": schema}})
}

#[test]
fn non_object_root_is_refused() {
    all_refused(&[
        (json!({"type": "array"}), &["object", "array"]),
        (json!({"type": ["object", "null"]}), &["object"]),
        (json!({}), &["object"]),
        (json!(true), &["object"]),
        (json!([]), &["object"]),
        (json!({"allOf": [{"type": "object"}]}), &["object"]),
    ]);
}

#[test]
fn external_references_are_refused() {
    all_refused(&[
        (property(json!({"$ref": "https://example.com/schema"})), &["$ref", "/properties/p"]),
        (property(json!({"$ref": "file:///etc/passwd"})), &["$ref", "/properties/p"]),
        (property(json!({"$ref": "other.json#/a"})), &["$ref", "/properties/p"]),
        (property(json!({"$ref": "#/$defs/missing"})), &["$ref", "/properties/p"]),
    ]);
}

#[test]
fn keywords_beyond_the_document_are_refused() {
    all_refused(&[
        (property(json!({"$dynamicRef": "#x"})), &["$dynamicRef", "/properties/p"]),
        (property(json!({"$dynamicAnchor": "x"})), &["$dynamicAnchor", "/properties/p"]),
        (property(json!({"$id": "https://example.com/p"})), &["$id", "/properties/p"]),
        (json!({"$schema": "https://example.com/dialect", "type": "object"}), &["$schema"]),
        (
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}),
            &["$schema"],
        ),
    ]);
}

#[test]
fn nonlinear_patterns_are_refused() {
    all_refused(&[
        (property(json!({"pattern": "(a)\\1"})), &["pattern", "/properties/p"]),
        (property(json!({"pattern": "(?=a)b"})), &["pattern", "/properties/p"]),
        (property(json!({"pattern": "["})), &["pattern", "/properties/p"]),
        (property(json!({"pattern": "a{1000}{1000}{1000}"})), &["pattern", "/properties/p"]),
        (
            property(json!({"patternProperties": {"(?<!x)y": true}})),
            &["patternProperties", "/properties/p"],
        ),
    ]);
}

#[test]
fn invalid_keyword_values_are_refused() {
    all_refused(&[
        (property(json!({"type": "text"})), &["type", "/properties/p"]),
        (property(json!({"minLength": -1})), &["minLength", "/properties/p"]),
        (property(json!({"required": "a"})), &["required", "/properties/p"]),
        (property(json!({"enum": "a"})), &["enum", "/properties/p"]),
        (property(json!({"anyOf": []})), &["anyOf", "/properties/p"]),
        (property(json!({"properties": []})), &["properties", "/properties/p"]),
        (property(json!({"multipleOf": 0})), &["multipleOf", "/properties/p"]),
    ]);
}

#[test]
fn path_argument_at_unknown_places_is_refused() {
    let path = || json!({"type": "string", "format": "workspace-path"});
    all_refused(&[
        (
            property(json!({"anyOf": [path(), {"type": "null"}]})),
            &["workspace-path", "/properties/p"],
        ),
        (json!({"type": "object", "additionalProperties": path()}), &["workspace-path"]),
        (json!({"type": "object", "patternProperties": {"^p": path()}}), &["workspace-path"]),
        (property(json!({"not": path()})), &["workspace-path"]),
        (property(json!({"prefixItems": [path()]})), &["workspace-path"]),
    ]);
}

#[test]
fn too_costly_schemas_are_refused() {
    let deep = (0..200).fold(json!({"type": "string"}), |inner, _| json!({"items": inner}));
    let wide: serde_json::Map<String, Value> =
        (0..3000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let doubling: serde_json::Map<String, Value> = (0..30)
        .map(|n| {
            (
                format!("d{n}"),
                json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}, {"$ref": format!("#/$defs/d{}", n + 1)}]}),
            )
        })
        .chain([("d30".to_owned(), json!({"type": "string"}))])
        .collect();
    all_refused(&[
        (property(deep), &[]),
        (json!({"type": "object", "properties": wide}), &[]),
        (
            json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": doubling}),
            &[],
        ),
        (property(json!({"$ref": "#/properties/p"})), &["$ref"]),
        (property(json!({"description": "x".repeat(300 << 10)})), &[]),
    ]);
}

#[test]
fn deceptive_names_are_refused() {
    all_refused(&[(json!({"type": "object", "properties": {"a\u{202e}b": {}}}), &["\\u{202e}"])]);
}
