//! Hostile schemas are refused, and hostile values cost a bounded number of steps.

use std::thread;

use serde_json::{Map, Value, json};

use super::super::meter::{self, Seen, Tariff};
use super::super::{
    Building, MAX_CHAIN, MAX_EXPANDED, MAX_PATTERNS, MAX_SUBSCHEMAS, MAX_VISITS, Schema,
    SchemaError,
};
use super::{complaint, refusal};

/// Half the stack of a runtime thread, in bytes.
const STACK: usize = 1 << 20;
const TOO_LARGE: &str = "is too large to be checked against its schema; want less at once";

fn in_a_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap()
}

fn nested(levels: usize, inner: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(inner, |inner, _| wrap(inner))
}

/// Returns a chain of definitions, each leading to the next by `step`, the last to `end`.
fn chained(length: usize, step: impl Fn(Value) -> Value, end: Value) -> Value {
    let mut defs: Map<String, Value> = (0..length)
        .map(|at| (format!("d{at}"), step(json!({"$ref": format!("#/$defs/d{}", at + 1)}))))
        .collect();
    defs.insert(format!("d{length}"), end);
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

#[test]
fn self_applying_schema_is_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"if": {"$ref": "#/$defs/a"}}}}),
        json!({"$defs": {"unused": {"$ref": "#/$defs/unused"}}}),
    ] {
        assert!(matches!(refusal(schema), SchemaError::Circle { .. }));
    }
}

#[test]
fn recursive_schema_validates_nested_values() {
    let tree = json!({"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "n": {"type": "integer"}}, "required": ["n"]});
    let schema = Schema::input(tree).unwrap();
    let deep = nested(60, json!({"n": 1}), |inner| json!({"n": 1, "left": inner}));
    assert_eq!(schema.validate(&deep), Ok(()));
    let wrong = nested(60, json!({"n": "1"}), |inner| json!({"n": 1, "right": inner}));
    assert_eq!(
        schema.validate(&wrong).unwrap_err().first().pointer,
        format!("{}/n", "/right".repeat(60))
    );
}

#[test]
fn subschemas_are_counted_also_with_references_expanded() {
    let wide = |width: usize| json!({"properties": (0..width).map(|at| (format!("p{at}"), json!(true))).collect::<Map<_, _>>()});
    assert!(Schema::output(wide(MAX_SUBSCHEMAS - 1)).is_ok());
    assert!(matches!(
        refusal(wide(MAX_SUBSCHEMAS)),
        SchemaError::TooMuch { what: "too many subschemas", .. }
    ));
    let laughs = chained(30, |next| json!({"properties": {"x": next, "y": next}}), json!(true));
    let SchemaError::TooMuch { what, .. } = refusal(laughs) else { panic!("something else") };
    assert_eq!(what, "too many subschemas with every `$ref` written out");
}

#[test]
fn maximum_of_expanded_subschemas_is_accepted() {
    let leaves: Map<_, _> = (0..18).map(|at| (format!("l{at}"), json!(true))).collect();
    // The root, twenty for each reference with what it leads to, and one for each property more.
    let referring = |more: usize| {
        let all = (0..999).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/d"})));
        let properties: Map<_, _> =
            all.chain((0..more).map(|at| (format!("m{at}"), json!(true)))).collect();
        json!({"properties": properties, "$defs": {"d": {"properties": leaves.clone()}}})
    };
    assert!(Schema::output(referring(19)).is_ok());
    let refused = Schema::output(referring(20)).map(drop);
    assert!(matches!(refused, Err(SchemaError::TooMuch { max: MAX_EXPANDED, .. })), "{refused:?}");
}

#[test]
fn subschemas_per_value_are_bounded() {
    let twice = chained(11, |next| json!({"allOf": [next, next]}), json!(true));
    assert!(matches!(refusal(twice), SchemaError::TooMuch { max: MAX_VISITS | MAX_CHAIN, .. }));
    assert!(Schema::output(chained(MAX_CHAIN - 2, |next| next, json!(true))).is_ok());
    assert!(matches!(
        refusal(chained(MAX_CHAIN - 1, |next| next, json!(true))),
        SchemaError::TooMuch { max: MAX_CHAIN, .. }
    ));
    let unevaluated =
        nested(12, json!({}), |inner| json!({"allOf": [inner], "unevaluatedProperties": false}));
    assert!(matches!(refusal(unevaluated), SchemaError::TooMuch { max: MAX_VISITS, .. }));
}

#[test]
fn patterns_are_bounded_in_length_and_number() {
    let many = |count: usize| json!({"allOf": (0..count).map(|at| json!({"pattern": format!("^{at}a")})).collect::<Vec<_>>()});
    assert!(Schema::output(many(MAX_PATTERNS)).is_ok());
    assert!(matches!(refusal(many(MAX_PATTERNS + 1)), SchemaError::Pattern { .. }));
    assert!(matches!(
        refusal(json!({"pattern": "a".repeat(4097)})),
        SchemaError::Pattern { why: "it is longer than 4 KiB", .. }
    ));
    let large: Vec<Value> =
        (0..8).map(|at| json!({"pattern": format!("[^a]{{90{at}}}")})).collect();
    assert!(matches!(refusal(json!({"allOf": large})), SchemaError::Pattern { .. }));
}

#[test]
fn worst_schema_fits_in_a_small_stack() {
    in_a_small_stack(|| {
        let end = json!({"type": "array", "items": {"$ref": "#/$defs/d0"}});
        for half in [true, false] {
            let step = |next| {
                if half { json!({"anyOf": [false, next]}) } else { json!({"allOf": [next]}) }
            };
            let schema = Schema::output(chained(MAX_CHAIN / 2 - 1, step, end.clone())).unwrap();
            assert_eq!(schema.validate(&nested(63, json!([]), |inner| json!([inner]))), Ok(()));
            assert!(schema.validate(&nested(63, json!(1), |inner| json!([inner]))).is_err());
        }
        let long = chained(900, |next| json!({"properties": {"a": next}}), json!(true));
        assert!(Schema::output(long).is_ok());
        let nest = |next| nested(6, next, |inner| json!({"properties": {"a": {"items": inner}}}));
        assert!(Schema::output(chained(100, nest, json!(true))).is_ok());
    });
}

#[test]
fn too_deep_value_is_refused_before_stack_overflow() {
    in_a_small_stack(|| {
        let schema = Schema::output(json!({"items": {"$ref": "#"}, "uniqueItems": true})).unwrap();
        let said = schema.validate(&nested(500, json!(1), |inner| json!([inner]))).unwrap_err();
        assert_eq!(said.to_string(), "is nested too deeply; want a depth of at most 64");
        assert_eq!(schema.validate(&nested(64, json!(1), |inner| json!([inner]))), Ok(()));
    });
}

#[test]
fn too_expensive_value_is_refused() {
    let heavy = json!({"items": {"allOf": (0..1500).map(|at| json!({"minimum": -at})).collect::<Vec<_>>()}});
    assert_eq!(complaint(heavy, &Value::Array(vec![json!(1); 50_000])), TOO_LARGE);
    let unique = json!({"items": {"allOf": (0..500).map(|_| json!({"uniqueItems": true})).collect::<Vec<_>>()}});
    let rows = Value::Array(vec![Value::Array((0..100).map(Value::from).collect()); 1000]);
    assert_eq!(complaint(unique, &rows), TOO_LARGE);
    let choice: Vec<Value> = (0..2000).map(|at| json!([at])).collect();
    assert_eq!(
        complaint(json!({"items": {"enum": choice}}), &Value::Array(vec![json!([1999]); 50_000])),
        TOO_LARGE
    );
}

#[test]
fn pattern_cost_depends_on_the_text_length() {
    let costly = Schema::output(json!({"pattern": "(?:a|b)*a(?:a|b){2000}c"})).unwrap();
    let text = "ab".repeat(1 << 19);
    assert!(
        costly.validate(&json!(text[..100])).unwrap_err().to_string().starts_with("want a text")
    );
    assert_eq!(costly.validate(&json!(text)).unwrap_err().to_string(), TOO_LARGE);
    let cheap = Schema::output(json!({"pattern": r"\S"})).unwrap();
    assert_eq!(cheap.validate(&json!(text)), Ok(()));
}

#[test]
fn many_errors_are_listed_without_delay() {
    let said =
        complaint(json!({"items": {"type": "string"}}), &Value::Array(vec![json!(1); 100_000]));
    assert_eq!(said, "`/0`: want string, got integer");
}

#[test]
fn exponential_alternatives_end() {
    let branch = |kind: &str| json!({"properties": {"a": {"$ref": "#/$defs/e"}, "z": {"const": kind}}, "required": ["z"]});
    let schema =
        json!({"$ref": "#/$defs/e", "$defs": {"e": {"oneOf": [branch("p"), branch("q")]}}});
    let schema = Schema::output(schema).unwrap();
    let value = |end: Value| nested(60, end, |inner| json!({"a": inner, "z": "p"}));
    assert_eq!(schema.validate(&value(json!({"z": "q"}))), Ok(()));
    assert!(schema.validate(&value(json!({"z": "neither"}))).is_err());
}

#[test]
fn step_account_is_reset_for_each_value() {
    let schema =
        Schema::output(json!({"items": {"allOf": vec![json!({"minimum": 0}); 1500]}})).unwrap();
    assert!(schema.validate(&Value::Array(vec![json!(1); 50_000])).is_err());
    assert_eq!(schema.validate(&json!([1, 2])), Ok(()));
}

#[test]
fn step_account_may_end_within_any_keyword() {
    let schemas = [
        json!({"type": "array", "items": {"type": "object"}, "minItems": 2, "maxItems": 3, "uniqueItems": true, "contains": {"minProperties": 1}, "minContains": 1}),
        json!({"prefixItems": [{"pattern": "^a"}], "items": {"required": ["a"]}, "unevaluatedItems": false}),
        json!({"properties": {"a": {"minLength": 1}}, "patternProperties": {"^b": {"enum": [1, "x"]}}, "additionalProperties": {"type": ["string", "null"]}}),
        json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false, "propertyNames": {"maxLength": 3}, "dependentSchemas": {"a": {"required": ["b"]}}}),
        json!({"oneOf": (1..4).map(|k| json!({"properties": {"k": {"const": k.to_string()}}, "required": ["k"]})).collect::<Vec<_>>(), "not": {"const": {"a": 1}}}),
        json!({"if": {"required": ["a"]}, "then": {"$ref": "#/$defs/r"}, "else": {"anyOf": [{"multipleOf": 2}, {"$ref": "#/$defs/r"}]},
            "$defs": {"r": {"additionalProperties": {"$ref": "#/$defs/r"}, "items": {"$ref": "#/$defs/r"}, "maximum": 3, "dependentRequired": {"a": ["b"]}}}}),
    ];
    let values = [
        json!([{"a": 1}, {"b": [2]}, "abc", {}]),
        json!({"a": "x", "bb": 1, "c": null, "k": "2"}),
        json!({"a": {"a": 1, "b": {"c": [[5]]}}}),
    ];
    for schema in schemas.map(|schema| Schema::output(schema).unwrap()) {
        for value in &values {
            for steps in 1..250 {
                let tariff = Tariff {
                    steps,
                    error: Some(meter::ErrorCost { steps: steps % 7, bytes: steps }),
                    ..Tariff::default()
                };
                meter::run(tariff, None, || {
                    schema.validator().unwrap().is_valid(Seen::root(value))
                });
                meter::run(tariff, None, || {
                    schema.validator().unwrap().iter_errors(Seen::root(value)).count()
                });
                meter::run(tariff, None, || {
                    schema.validator().unwrap().validate(Seen::root(value)).is_ok()
                });
            }
        }
    }
}

#[test]
fn lazy_and_eager_validators_agree() {
    let text = r#"{"type": "object", "properties": {"path": {"type": "string", "pattern": "^[a-z]+$"}}, "required": ["path"]}"#;
    let [now, later] = [Building::Now, Building::AtFirstUse]
        .map(|building| Schema::parse_input_built(text, building).unwrap());
    assert!(later.0.validator.get().is_none(), "it is built although nobody has used it");
    for value in
        [json!({"path": "ok"}), json!({}), json!({"path": 1}), json!({"path": "NO"}), json!(null)]
    {
        assert_eq!(now.validate(&value), later.validate(&value), "{value}");
    }
    assert!(later.0.validator.get().is_some());
}

#[test]
fn pointers_of_the_keywords_are_bounded() {
    let nested = |depth: usize, members: usize| {
        let members = (0..members).map(|number| format!(r#""{number}":{{"type":"string"}}"#));
        let members = members.collect::<Vec<_>>().join(",");
        let name = "~".repeat(255);
        let open = format!(r#"{{"properties":{{"{name}":"#).repeat(depth);
        format!(r#"{open}{{"properties":{{{members}}}}}{}"#, "}}".repeat(depth))
    };
    // The pointer of each of these keywords has 13 × 524 bytes.
    assert!(Schema::parse_output(&nested(13, 10)).is_ok());
    let refused = Schema::parse_output(&nested(13, 1_000)).unwrap_err().to_string();
    assert!(refused.contains("too many bytes in the JSON pointers"), "{refused}");
    assert!(Schema::parse_output(&nested(0, 1_900)).is_ok());
}

#[test]
fn memory_of_the_validator_is_an_upper_bound_of_its_parts() {
    let memory = |text: &str| Schema::parse_output(text).unwrap().validator_memory();
    let many = vec!["{}"; 1_990].join(",");
    // Measured: 415 KB, 27.1 MB.
    assert!(memory(&format!(r#"{{"allOf":[{many}]}}"#)) > 415_000);
    let values = vec![r#"{"":0}"#; 19_900].join(",");
    assert!(memory(&format!(r#"{{"enum":[{values}]}}"#)) > 27_100_000);
}
