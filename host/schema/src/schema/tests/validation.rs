//! Messages of violations: the position and the accepted form, never the value.

use serde_json::{Value, json};

use super::super::Schema;
use super::{complaint, with_x};

#[test]
fn conforming_value_is_accepted() {
    let schema = Schema::input(with_x(json!({"type": "integer", "minimum": 1}))).unwrap();
    for value in [json!({}), json!({"x": 1}), json!({"x": 2.0, "unknown": [null]})] {
        assert_eq!(schema.validate(&value), Ok(()));
    }
}

#[test]
fn every_reason_states_the_expected_value() {
    for (schema, value, reason) in [
        (json!({"type": "integer"}), json!("a"), "want integer, got string"),
        (json!({"type": "integer"}), json!(1.5), "want integer, got number"),
        (json!({"type": ["string", "null"]}), json!(1), "want null or string, got integer"),
        (json!({"required": ["path"]}), json!({}), "\"path\" is missing"),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1}), "\"b\" is missing"),
        (json!({"additionalProperties": false}), json!({"pth": 1}), "\"pth\" is not accepted here"),
        (
            json!({"additionalProperties": false}),
            json!({"a": 1, "b": 1}),
            "\"a\" and \"b\" are not accepted here",
        ),
        (json!({"unevaluatedProperties": false}), json!({"a": 1}), "\"a\" is not accepted here"),
        (json!({"enum": ["a", 1]}), json!("b"), "want one of \"a\", 1"),
        (json!({"const": "a"}), json!("b"), "want \"a\""),
        (json!({"minimum": 3}), json!(2), "want at least 3"),
        (json!({"maximum": 3}), json!(4), "want at most 3"),
        (json!({"exclusiveMinimum": 3}), json!(3), "want more than 3"),
        (json!({"exclusiveMaximum": 3}), json!(3), "want less than 3"),
        (json!({"multipleOf": 2}), json!(3), "want a multiple of 2"),
        (json!({"minLength": 1}), json!(""), "want at least 1 character"),
        (json!({"maxLength": 2}), json!("äöü"), "want at most 2 characters"),
        (json!({"pattern": "^a"}), json!("b"), "want a text that matches the pattern ^a"),
        (json!({"minItems": 2}), json!([1]), "want at least 2 elements"),
        (json!({"maxItems": 1}), json!([1, 2]), "want at most 1 element"),
        (json!({"uniqueItems": true}), json!([1, 1.0]), "want elements that all differ"),
        (
            json!({"contains": {"const": 1}}),
            json!([2]),
            "want elements, in a certain number, that match `contains`",
        ),
        (json!({"minProperties": 1}), json!({}), "want at least 1 member"),
        (json!({"maxProperties": 0}), json!({"a": 1}), "want at most 0 members"),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            "a property name is not accepted: want at most 1 character",
        ),
        (json!({"not": {}}), json!(1), "is what `not` excludes"),
        (json!(false), json!(1), "nothing is accepted here"),
        (
            json!({"oneOf": [true, true]}),
            json!(1),
            "matches more than one alternative of `oneOf`; want exactly one",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!(1),
            "want string or null, got integer",
        ),
    ] {
        assert_eq!(complaint(schema.clone(), &value), reason, "{schema}");
    }
}

#[test]
fn place_is_a_json_pointer() {
    let schema = with_x(json!({"items": {"properties": {"a/b~c": {"type": "string"}}}}));
    assert_eq!(
        complaint(schema, &json!({"x": [{}, {"a/b~c": 1}]})),
        "`/x/1/a~1b~0c`: want string, got integer"
    );
}

#[test]
fn closest_alternative_is_explained() {
    let schema = json!({"oneOf": [
        {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind", "n"]},
        {"properties": {"kind": {"const": "b"}, "s": {"type": "string"}, "t": true}, "required": ["kind", "s", "t"]},
    ]});
    let reason = complaint(schema, &json!({"kind": "b", "s": "x"}));
    assert_eq!(reason, "matches none of 2 alternatives; the closest: \"t\" is missing");
}

#[test]
fn reasons_never_quote_a_value() {
    const SECRET: &str = "hunter2";
    let keywords = [
        json!({"type": "integer"}),
        json!({"enum": ["a"]}),
        json!({"const": 1}),
        json!({"pattern": "^a$"}),
        json!({"maxLength": 1}),
        json!({"not": {}}),
        json!({"anyOf": [{"const": 1}, {"type": "null"}]}),
        json!({"oneOf": [{"maxLength": 1}, {"minLength": 99}]}),
        json!(false),
        json!({"allOf": [{"type": "null"}]}),
        json!({"$ref": "#/$defs/n"}),
    ];
    for keyword in keywords {
        let mut schema = with_x(keyword.clone());
        schema["$defs"] = json!({"n": {"type": "null"}});
        let said = complaint(schema, &json!({"x": SECRET}));
        assert!(!said.contains(SECRET), "{keyword}: {said}");
    }
    let lists = json!({"prefixItems": [true], "unevaluatedItems": false, "uniqueItems": true});
    assert!(!complaint(lists, &json!([SECRET, SECRET])).contains(SECRET));
}

#[test]
fn at_most_ten_distinct_violations_are_listed() {
    let schema =
        Schema::output(json!({"items": {"allOf": [{"type": "string"}, {"type": "string"}]}}))
            .unwrap();
    let violations = schema.validate(&json!([1, 2])).unwrap_err();
    assert_eq!(violations.as_slice().len(), 2);
    let violations = schema.validate(&Value::Array(vec![json!(1); 50])).unwrap_err();
    assert_eq!(violations.as_slice().len(), 10);
    assert_eq!(violations.first().pointer, "/0");
}

#[test]
fn list_is_below_four_kibibytes() {
    let name = "n".repeat(900);
    let value: Value = (0..20)
        .map(|at| (format!("{name}{at:02}"), json!(1)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let schema = Schema::output(json!({"additionalProperties": {"type": "string"}})).unwrap();
    let violations = schema.validate(&value).unwrap_err();
    assert!(violations.to_string().len() <= 4096 + 100 && violations.as_slice().len() == 4);
    let far = complaint(
        json!({"additionalProperties": {"type": "string"}}),
        &json!({"n".repeat(5000): 1}),
    );
    assert_eq!(far, "does not conform to its schema, and is too large to say where");
}

#[test]
fn name_in_a_reason_is_escaped_and_cut() {
    let said = complaint(json!({"additionalProperties": false}), &json!({"a\u{202e}\nb": 1}));
    assert_eq!(said, "\"a\\u{202e}\\nb\" is not accepted here");
    let said = complaint(json!({"additionalProperties": false}), &json!({"n".repeat(500): 1}));
    assert!(said.len() < 150, "{said}");
}

#[test]
fn formats_and_content_keywords_are_annotations() {
    for dialect in
        ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
    {
        for keyword in [
            json!({"format": "email"}),
            json!({"format": "regex"}),
            json!({"contentEncoding": "base64"}),
            json!({"contentMediaType": "application/json"}),
        ] {
            let mut schema = with_x(keyword);
            schema["$schema"] = json!(dialect);
            assert_eq!(Schema::output(schema).unwrap().validate(&json!({"x": "{(%"})), Ok(()));
        }
    }
}

#[test]
fn equality_is_that_of_json_values() {
    let schema = Schema::output(json!({"enum": [1, {"a": [1.0]}]})).unwrap();
    assert!(schema.validate(&json!(1.0)).is_ok() && schema.validate(&json!({"a": [1]})).is_ok());
    assert!(schema.validate(&json!(true)).is_err());
}

#[test]
fn unknown_key_of_a_closed_schema_has_a_suggestion() {
    let closed = json!({"type": "object", "additionalProperties": false, "properties": {"path": {}, "limit": {}}});
    let said = |value| complaint(closed.clone(), &value);
    assert_eq!(
        said(json!({"Limit": 3})),
        "\"Limit\" is not accepted here; did you mean \"limit\"?"
    );
    assert_eq!(said(json!({"zzz": 3})), "\"zzz\" is not accepted here");
    let inner = json!({"type": "object", "properties": {"in": closed, "other": {}}});
    let said = complaint(inner, &json!({"in": {"pth": 1}}));
    assert_eq!(said, "`/in`: \"pth\" is not accepted here; did you mean \"path\"?");
}
