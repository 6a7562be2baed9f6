//! No step of the account hides more work than a step may cost, for any combination of keywords.

use std::fs;

use serde_json::{Map, Value, json};

use super::super::meter::{self, ErrorCost, Seen, Spent};
use super::super::{MAX_PATTERNS, Schema, SchemaError};
use super::charges::{TOO_LARGE, steps};
use super::{complaint, refusal};

/// The most time of one step on average, in nanoseconds, without optimisation. The accessors take
/// some 100 then. Work that no step is charged for takes thousands.
const NANOSECONDS: u64 = 1_000;
/// The time that is not compared, in nanoseconds: setting up a run, and other noise.
const NOISE: u64 = 8_000_000;

/// Returns the processor time of this thread, in nanoseconds.
fn processor_time() -> u64 {
    let times = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split(' ').next().unwrap().parse().unwrap()
}

/// The account of one run, which is small, so that all combinations take seconds.
const ACCOUNT: u64 = 500_000;

/// Validates with a small account. Returns the charged steps and the processor time.
fn measured(schema: &Schema, value: &Value, listing: bool) -> (u64, u64) {
    let validator = schema.validator().unwrap();
    let error = listing.then_some(ErrorCost { steps: 500, bytes: 1024 });
    let begin = processor_time();
    let (_, spent) = meter::run(schema.tariff(ACCOUNT, error), None, || {
        if listing {
            validator.iter_errors(Seen::root(value)).count() == 0
        } else {
            validator.is_valid(Seen::root(value))
        }
    });
    let time = processor_time() - begin;
    (if let Spent::Within(left) = spent { ACCOUNT - left } else { ACCOUNT }, time)
}

/// Keywords that are applied to one value several hundred times.
fn parts() -> Vec<Value> {
    let names: Map<String, Value> = (0..40).map(|at| (format!("p{at}"), json!(true))).collect();
    vec![
        json!({}),
        json!({"patternProperties": {"^(?:[b-y]{3})*$": true}}),
        json!({"patternProperties": {"^(?:[b-y]{3})*$": true}, "additionalProperties": true}),
        json!({"patternProperties": {"^(?:[b-y]{3})*$": true}, "additionalProperties": {"type": "null"}}),
        json!({"patternProperties": {"[ab]*a[ab]{40}[c-p]": true}}),
        json!({"pattern": "[ab]*a[ab]{40}[c-p]"}),
        json!({"patternProperties": {"^p": true}, "properties": {"p1": true}}),
        json!({"properties": names}),
        json!({"properties": {"p1": {"type": "integer"}}, "additionalProperties": false}),
        json!({"propertyNames": {"pattern": "^(?:[b-y]{3})*$"}}),
        json!({"propertyNames": {"maxLength": 9}}),
        json!({"required": ["p1", "p2"]}),
        json!({"dependentRequired": {"p1": ["p2"]}}),
        json!({"dependentSchemas": {"p1": {"patternProperties": {"^(?:[b-y]{3})*$": true}}}}),
        json!({"minProperties": 1}),
        json!({"unevaluatedProperties": {"type": "integer"}}),
        json!({"items": true}),
        json!({"items": {"type": "integer"}}),
        json!({"prefixItems": [true, true]}),
        json!({"prefixItems": [{"type": "integer"}]}),
        json!({"contains": {"type": "string"}, "minContains": 0}),
        json!({"contains": true, "maxContains": 3}),
        json!({"unevaluatedItems": {"type": "integer"}}),
        json!({"minItems": 1}),
        json!({"uniqueItems": true}),
        json!({"pattern": "^(?:[b-y]{3})*$"}),
        json!({"pattern": "^(p1|p2|p3)$"}),
        json!({"maxLength": 9}),
        json!({"enum": ["a", 1, [1]]}),
        json!({"enum": ["a", "b"]}),
        json!({"const": "a"}),
        json!({"multipleOf": 0.5}),
        json!({"$ref": "#/$defs/all"}),
    ]
}

/// Returns schemas that apply the parts to one value `count` times.
fn applied(part: &Value, count: usize) -> Vec<Value> {
    let reference = || json!({"$ref": "#/$defs/part"});
    let all = || Value::from(vec![reference(); count]);
    let each = |keyword: &str| {
        let rest = [keyword, "unevaluatedProperties", "unevaluatedItems"];
        let whole = (1..=3).map(|used| -> Value {
            let members = rest[..used].iter().enumerate().map(|(at, keyword)| {
                ((*keyword).to_owned(), if at == 0 { all() } else { json!(false) })
            });
            Value::Object(members.collect())
        });
        whole.collect::<Vec<_>>()
    };
    let mut schemas = each("allOf");
    schemas.extend(each("anyOf"));
    schemas.extend(each("oneOf"));
    let when = json!({"if": reference(), "then": reference(), "else": reference(), "unevaluatedProperties": false, "unevaluatedItems": false});
    schemas.push(json!({"allOf": vec![when; count / 12]}));
    let not = json!({"not": {"not": reference()}});
    schemas.push(json!({"allOf": vec![not; count / 4], "unevaluatedItems": false}));
    let mut nested = reference();
    for _ in 0..3 {
        nested = json!({"allOf": vec![nested; 3], "unevaluatedProperties": {"type": "integer"}, "unevaluatedItems": {"type": "integer"}});
    }
    schemas.push(nested);
    let first = json!([{"items": true, "additionalProperties": true}]);
    let mut behind = first.as_array().unwrap().clone();
    behind.extend(vec![reference(); count]);
    schemas
        .push(json!({"allOf": behind, "unevaluatedItems": false, "unevaluatedProperties": false}));
    schemas.push(json!({"items": {"allOf": all(), "unevaluatedItems": false}}));
    schemas.push(json!({"additionalProperties": {"allOf": all(), "unevaluatedProperties": false}}));
    // The validator collects what a `$ref` evaluates before it follows the `$ref`.
    schemas.push(json!({"$ref": "#/$defs/many", "unevaluatedProperties": {"type": "integer"}}));
    schemas.push(json!({"$ref": "#/$defs/many", "unevaluatedItems": false}));
    for schema in &mut schemas {
        let part = (*part).clone();
        let all =
            json!({"allOf": [{"items": true}, {"patternProperties": {"^(?:[b-y]{3})*$": true}}]});
        schema["$defs"] =
            json!({"part": part, "all": all, "many": {"allOf": vec![reference(); count]}});
    }
    schemas
}

fn values() -> Vec<(&'static str, Value)> {
    let long = "b".repeat(140_000);
    // No two windows of the slow pattern are equal, so that no engine can reuse its states.
    let mut bits = 1_u32;
    let slow: String = (0..30_000)
        .map(|_| {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if bits >> 31 == 0 { 'a' } else { 'b' }
        })
        .collect();
    let numbered = |count: usize| -> Value {
        Value::Object((0..count).map(|at| (format!("p{at}"), json!(at))).collect())
    };
    vec![
        ("long name", json!({long.clone(): 1})),
        ("long names", json!({format!("{long}p"): "1", format!("{long}q"): {}, long.clone(): 1})),
        ("long text", json!(long.clone())),
        ("long texts", json!([long, 1])),
        ("many members", numbered(20_000)),
        ("some members", numbered(45)),
        ("slow name", json!({slow.clone(): 1})),
        ("slow text", json!(slow)),
        ("many elements", (0..200_000).map(|at| json!(at)).collect()),
        ("many lists", (0..2000).map(|at| json!([at, [at]])).collect()),
        ("many objects", (0..2000).map(|at| json!({"p1": at, "p2": {"p1": 1}})).collect()),
        ("object of objects", json!({"p1": numbered(3000), "b": {"p1": numbered(30)}})),
    ]
}

#[test]
fn collected_name_pattern_is_charged_for_each_match() {
    let name = || json!({"patternProperties": {"^(?:[b-y]{3})*$": true}});
    let collecting = |part: Value, count: usize| {
        let parts = vec![part; count];
        json!({"allOf": parts, "unevaluatedProperties": {"type": "integer"}, "$defs": {"name": name()}})
    };
    let value = json!({"b".repeat(100): 1});
    for part in [name(), json!({"$ref": "#/$defs/name"}), json!({"allOf": [name()]})] {
        // Each subschema gets the name, and the price is that of the most expensive one.
        let [few, many] = [10, 100]
            .map(|count| steps(&Schema::output(collecting(part.clone(), count)).unwrap(), &value));
        assert!(few >= 10 * 10 * 400 && many >= 100 * 100 * 400, "{few} and {many}: {part}");
        assert!(matches!(
            refusal(collecting(part, MAX_PATTERNS + 1)),
            SchemaError::TooMuch { max: MAX_PATTERNS, .. }
        ));
    }
    // Names are matched against the patterns of their own object only.
    let apart: Map<String, Value> = (0..100).map(|at| (format!("p{at}"), name())).collect();
    let apart = Schema::output(json!({"properties": apart})).unwrap();
    assert!(steps(&apart, &json!({"p1": {"b".repeat(1000): 1}})) < 12_000);
}

#[test]
fn name_that_is_long_to_match_is_not_matched() {
    let patterns: Map<String, Value> =
        (0..100).map(|at| (format!("^(?:[b-y]{{3}})*{at}$"), json!(true))).collect();
    let schema = json!({"patternProperties": patterns, "additionalProperties": {}});
    assert_eq!(complaint(schema.clone(), &json!({"b".repeat(1500): 1})), TOO_LARGE);
    assert_eq!(Schema::output(schema).unwrap().validate(&json!({"b".repeat(1000): 1})), Ok(()));
}

#[test]
fn passes_over_many_elements_do_not_begin() {
    let passing = |passes: usize| {
        let mut parts = vec![json!({"items": true})];
        parts.extend(vec![json!({"title": "t"}); passes]);
        Schema::output(json!({"allOf": parts, "unevaluatedItems": false})).unwrap()
    };
    let elements = |count: usize| Value::from(vec![json!(0); count]);
    assert_eq!(passing(600).validate(&elements(1000)), Ok(()));
    let value = elements(2_000_000);
    // A hundred times as many passes take no more time, because none begins.
    let [few, many] = [6, 600].map(|passes| {
        let schema = passing(passes);
        let begin = processor_time();
        assert_eq!(schema.validate(&value).unwrap_err().to_string(), TOO_LARGE);
        processor_time() - begin
    });
    assert!(many < 10 * few, "{few} and {many} ns");
}

#[test]
fn charged_steps_bound_the_time_for_all_combinations() {
    let values = values();
    for part in parts() {
        for document in [480, 120].into_iter().flat_map(|count| applied(&part, count)) {
            let Ok(schema) = Schema::output(document.clone()) else { continue };
            for (name, value) in &values {
                for listing in [false, true] {
                    let (steps, time) = measured(&schema, value, listing);
                    let most = NOISE + steps * NANOSECONDS;
                    assert!(
                        time <= most,
                        "{name}, {steps} steps, {time} ns, listing: {listing}: {part} in {document:.200}"
                    );
                }
            }
        }
    }
}

#[test]
fn patterns_of_many_escapes_are_checked_in_a_moment() {
    /// The most processor time for a schema, in nanoseconds, without optimisation. One such pattern
    /// took up to 41 s.
    const TIME: u64 = 2_000_000_000;
    let patterns = [
        r"\s".repeat(2_045),
        r"\s\S".repeat(1_022),
        format!("(?:{}){{0}}", r"\s".repeat(2_040)),
        r"\w".repeat(2_045),
        r"\w?".repeat(1_363),
        r"\d".repeat(2_045),
        r"\cA".repeat(1_365),
        r"[\s\S]".repeat(580),
        r"\d[\W]".repeat(580),
    ];
    for pattern in &patterns {
        let variants = (0..16).map(|n| format!("{pattern}{n}"));
        let values: Vec<Value> =
            variants.clone().map(|pattern| json!({ "pattern": pattern })).collect();
        let names: Map<String, Value> = variants.map(|pattern| (pattern, json!(true))).collect();
        for schema in [json!({ "allOf": values }), json!({ "patternProperties": names })] {
            let begin = processor_time();
            let accepted = Schema::output(schema).is_ok();
            let time = processor_time() - begin;
            assert!(time < TIME, "{} ms, accepted: {accepted}, {pattern:.20}", time / 1_000_000);
        }
    }
}
