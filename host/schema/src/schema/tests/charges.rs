//! The cost of validation: every keyword is charged by the size of the data that it reads, and
//! obeys the budget of the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::super::meter::{self, Seen, Spent};
use super::super::{Building, MAX_STEPS, Schema};
use super::complaint;
use crate::budget::{Budget, Exhausted};

pub(super) const TOO_LARGE: &str =
    "is too large to be checked against its schema; want less at once";

/// Returns the steps of validating a value.
pub(super) fn steps(schema: &Schema, value: &Value) -> u64 {
    let validator = schema.validator().unwrap();
    match meter::run(schema.tariff(MAX_STEPS, None), None, || validator.is_valid(Seen::root(value)))
    {
        (_, Spent::Within(left)) => MAX_STEPS - left,
        (_, spent) => panic!("{spent:?}"),
    }
}

fn list(count: usize, element: impl Fn(usize) -> Value) -> Value {
    (0..count).map(element).collect()
}

fn object(count: usize, name: impl Fn(usize) -> String) -> Value {
    Value::Object((0..count).map(|at| (name(at), json!(at))).collect())
}

fn all_of(count: usize, keyword: Value) -> Value {
    json!({"allOf": vec![keyword; count]})
}

#[test]
fn keyword_cost_depends_on_the_value_size() {
    let long = || json!("x".repeat(64_000));
    let ones = || list(1000, |_| json!(1));
    let thousand = || object(1000, |at| format!("{at:04}"));
    let cases = [
        (json!({"const": long()}), long(), 1000),
        (json!({"const": ones()}), ones(), 1000),
        (json!({"const": {"a": ones()}}), json!({"a": ones()}), 1000),
        (json!({"const": thousand()}), thousand(), 2000),
        (json!({"enum": [long(), 1]}), long(), 1000),
        (json!({"enum": (0..1000).map(|at| json!([at])).collect::<Vec<_>>()}), json!([999]), 2000),
        (json!({"items": {"enum": [[1], [2]]}}), list(1000, |_| json!([2])), 4000),
        (json!({"enum": [list(1000, |_| json!([])), 1]}), list(1000, |_| json!([])), 1000),
        (json!({"enum": [list(1000, |_| json!({})), 1]}), list(1000, |_| json!({})), 1000),
        (json!({"uniqueItems": true}), list(1000, |at| json!(at)), 8000),
        (json!({"uniqueItems": true}), list(15, |at| json!(at)), 200),
        (json!({"uniqueItems": true}), list(100, |at| json!(format!("{at:06400}"))), 10_000),
        (json!({"uniqueItems": true}), list(2, |at| json!([ones(), at])), 1000),
        (json!({"contains": {"const": 2}}), ones(), 2000),
        (json!({"contains": true, "minContains": 1000}), ones(), 1000),
        (json!({"propertyNames": {"type": "string"}}), thousand(), 3000),
        (json!({"propertyNames": {"maxLength": 9}}), object(1, |_| "n".repeat(64_000)), 3000),
        (json!({"propertyNames": {"const": "a"}}), object(1, |_| "n".repeat(64_000)), 2000),
        (json!({"patternProperties": {"^[a-z]{3}": true}}), object(1, |_| "n".repeat(1000)), 4000),
        (json!({"patternProperties": {"^[a-z]{3}": true}}), json!({"": 1}), 8),
        (json!({"additionalProperties": {"type": "integer"}}), thousand(), 4000),
        (json!({"required": ["0999"]}), thousand(), 5),
        (
            json!({"required": [format!("{:06400}", 1)]}),
            object(1000, |at| format!("{at:06400}")),
            400,
        ),
        (json!({"dependentRequired": {"0000": ["0001"]}}), thousand(), 10),
        (json!({"maxLength": 9}), long(), 1000),
        (json!({"pattern": "^[a-z]{3}"}), json!("x".repeat(1000)), 4000),
        (json!({"pattern": format!("^({})$", vec!["abc"; 1000].join("|"))}), json!("x"), 100),
        (all_of(1000, json!({"multipleOf": 0.5})), json!(1.797e308), 20_000),
        (all_of(1000, json!({"multipleOf": 0.5})), json!("no number"), 1000),
        (all_of(1000, json!({"minimum": 0.5})), json!([]), 1000),
        (all_of(1000, json!({"minProperties": 1})), json!(1), 1000),
        (all_of(1000, json!({"minItems": 1})), json!(1), 1000),
        (all_of(1000, json!({"maxLength": 1})), json!(1), 1000),
        (all_of(100, json!({"pattern": "a"})), json!(1), 100),
        (all_of(1000, json!({"type": "boolean"})), json!(true), 1000),
        (all_of(1000, json!({"const": null})), json!(null), 1000),
    ];
    for (schema, value, least) in cases {
        let took = steps(&Schema::output(schema.clone()).unwrap(), &value);
        assert!(took >= least, "{took} steps, want {least}: {schema:.80}");
    }
}

#[test]
fn member_lookup_costs_a_comparison_per_level() {
    let name = |at: usize| format!("{at:06400}");
    let required = Schema::output(json!({"required": [name(1)]})).unwrap();
    let took = [1, 1000].map(|count| steps(&required, &object(count, name)));
    assert!((100..200).contains(&took[0]), "{took:?}");
    assert!((500..600).contains(&took[1]), "{took:?}");
}

#[test]
fn trivial_subschemas_cost_a_step_per_value() {
    for silent in [
        json!({}),
        json!(true),
        json!({"title": "t"}),
        json!({"not": false}),
        json!({"$ref": "#/$defs/e"}),
    ] {
        let silent = || vec![silent.clone(); 800];
        for (value, schema) in [
            (list(100, |_| json!(1)), json!({"items": {"allOf": silent()}, "$defs": {"e": {}}})),
            (
                object(100, |at| at.to_string()),
                json!({"additionalProperties": {"allOf": silent()}, "$defs": {"e": {}}}),
            ),
        ] {
            let took = steps(&Schema::output(schema.clone()).unwrap(), &value);
            assert!(took >= 10_000, "{took} steps: {schema:.80}");
        }
    }
    let ordinary = Schema::output(json!({"items": {"anyOf": [{"type": "null"}, {}]}})).unwrap();
    assert!(steps(&ordinary, &list(1000, |_| json!(1))) <= 2010);
}

#[test]
fn large_numbers_are_divided_within_the_account() {
    let huge = |count| list(count, |_| json!(1.797e308));
    let items = |count| json!({"items": all_of(count, json!({"multipleOf": 0.5}))});
    assert_eq!(complaint(items(1900), &huge(5200)), TOO_LARGE);
    assert_eq!(Schema::output(items(10)).unwrap().validate(&huge(5200)), Ok(()));
    let said = complaint(json!({"items": {"multipleOf": 7}}), &json!([7e300, 1e300]));
    assert_eq!(said, "`/1`: want a multiple of 7");
}

#[test]
fn million_unique_elements_are_compared() {
    let unique = Schema::output(json!({"uniqueItems": true})).unwrap();
    assert_eq!(unique.validate(&list(1_000_000, |at| json!(at))), Ok(()));
    // As floats they round to five hundred different values.
    let close = list(100_000, |at| json!((1_u64 << 63) + at as u64));
    assert!(steps(&unique, &close) <= 900_000);
    assert_eq!(unique.validate(&close), Ok(()));
}

#[test]
fn elements_are_equal_in_any_notation() {
    let unique = Schema::output(json!({"uniqueItems": true})).unwrap();
    let pairs = [
        (json!(1), json!(1.0)),
        (json!(0), json!(-0.0)),
        (json!(-3), json!(-3.0)),
        (json!(1_u64 << 63), json!(9_223_372_036_854_775_808.0)),
        (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1.0})),
        (json!("a"), json!("a")),
        (json!(1e300), json!(1e300)),
        (json!([null, true]), json!([null, true])),
    ];
    for others in [0_usize, 40] {
        let array = |pair: &[&Value]| -> Value {
            let others = (0..others).map(|at| json!({"other": at, "list": [at, {}]}));
            others.chain(pair.iter().map(|value| (*value).clone())).collect()
        };
        for (one, same) in &pairs {
            assert!(unique.validate(&array(&[one, same])).is_err(), "{one} and {same}");
        }
        let all: Vec<&Value> = pairs.iter().map(|(one, _)| one).collect();
        assert_eq!(unique.validate(&array(&all)), Ok(()));
        for (one, other) in [
            (json!("1"), json!(1)),
            (json!(false), json!(0)),
            (json!({}), json!([])),
            (json!([1, 2]), json!([2, 1])),
        ] {
            assert_eq!(unique.validate(&array(&[&one, &other])), Ok(()), "{one} and {other}");
        }
    }
}

/// A budget that expires at a given check, and records reservations.
pub(super) struct Ends {
    questions: AtomicU64,
    last: u64,
    memory: u64,
    held: AtomicU64,
    most: AtomicU64,
}

impl Ends {
    pub(super) fn after(last: u64, memory: u64) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self { questions: zero(), last, memory, held: zero(), most: zero() })
    }
}

impl Ends {
    pub(super) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

impl Budget for Ends {
    fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        if bytes > self.memory {
            return Err(Exhausted::CallMemory { limit: self.memory });
        }
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        self.most.fetch_max(before + bytes, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), Exhausted> {
        if self.questions.fetch_add(1, Ordering::Relaxed) < self.last {
            Ok(())
        } else {
            Err(Exhausted::Deadline)
        }
    }
}

pub(super) fn within(ends: &Arc<Ends>, schema: Value, value: &Value) -> Result<bool, Exhausted> {
    let budget: Arc<dyn Budget> = ends.clone();
    Schema::output(schema).unwrap().validate_within(value, &budget).map(|verdict| verdict.is_ok())
}

#[test]
fn validation_ends_with_its_budget() {
    let heavy = list(20_000, |_| json!(1));
    for (schema, value) in [
        (json!({"items": all_of(100, json!({"multipleOf": 0.5}))}), &heavy),
        (json!({"uniqueItems": true}), &list(20_000, |at| json!(at))),
        (json!({"const": heavy}), &heavy),
        (json!({"items": {"type": "string"}}), &heavy),
        (json!({"contains": {"const": 2}, "minContains": 0}), &heavy),
        (json!({"propertyNames": {"maxLength": 9}}), &object(20_000, |at| at.to_string())),
    ] {
        assert!(within(&Ends::after(u64::MAX, u64::MAX), schema.clone(), value).is_ok());
        for last in [0, 1, 5] {
            assert_eq!(
                within(&Ends::after(last, u64::MAX), schema.clone(), value),
                Err(Exhausted::Deadline),
                "{schema:.80}"
            );
        }
    }
}

#[test]
fn budget_is_checked_every_two_thousand_steps() {
    let schema = json!({"items": {"minimum": 0}});
    let value = list(100_000, |_| json!(1));
    let ends = Ends::after(u64::MAX, 0);
    assert_eq!(within(&ends, schema.clone(), &value), Ok(true));
    let took = steps(&Schema::output(schema).unwrap(), &value);
    assert!(ends.questions.load(Ordering::Relaxed) >= took / 2000, "{took} steps");
}

#[test]
fn comparison_memory_is_reserved_and_released() {
    let elements = list(1000, |at| json!(at));
    let ends = Ends::after(u64::MAX, 1 << 20);
    assert_eq!(within(&ends, json!({"uniqueItems": true}), &elements), Ok(true));
    assert_eq!(ends.held.load(Ordering::Relaxed), 0);
    let poor = within(&Ends::after(u64::MAX, 1 << 10), json!({"uniqueItems": true}), &elements);
    assert_eq!(poor, Err(Exhausted::CallMemory { limit: 1 << 10 }));
}

#[test]
fn explanation_memory_is_bounded_and_released() {
    let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
    let schema = Schema::output(json!({"anyOf": vec![closed; 33]})).unwrap();
    let said = |names: usize, memory: u64| {
        let ends = Ends::after(u64::MAX, memory);
        let budget: Arc<dyn Budget> = ends.clone();
        let verdict = schema.validate_within(&object(names, |at| format!("{at:05x}")), &budget);
        assert_eq!(ends.held.load(Ordering::Relaxed), 0);
        (verdict.unwrap().unwrap_err().to_string(), ends.most.load(Ordering::Relaxed))
    };
    let many = "does not conform to its schema, and is too large to say where";
    let (few, most) = said(500, u64::MAX);
    assert!(few.starts_with("matches none of 33 alternatives; the closest"), "{few}");
    // Each alternative keeps a copy of each name.
    assert!(most >= 33 * 500 * (5 + 24), "{most}");
    let (all, most) = said(100_000, u64::MAX);
    assert!(all == many && (4 << 20..9 << 20).contains(&most), "{all}: {most}");
    assert_eq!(said(500, 1 << 10).0, many);
    assert_eq!(
        complaint(schema.as_value().clone(), &object(100_000, |at| format!("{at:05x}"))),
        many
    );
}

#[test]
fn quoted_schema_counts_in_an_error() {
    let excluded: Map<String, Value> =
        (0..1000).map(|at| (format!("p{at}"), json!({"type": "null"}))).collect();
    let schema = json!({"items": {"not": {"properties": excluded}}});
    let ends = Ends::after(u64::MAX, u64::MAX);
    assert_eq!(within(&ends, schema, &list(300, |_| json!(1))), Ok(false));
    assert!(ends.most.load(Ordering::Relaxed) > 4 << 20, "{:?}", ends.most);
}

#[test]
fn slow_validator_is_not_built_immediately() {
    let pattern =
        json!({"type": "object", "properties": {"p": {"pattern": "a{2000}"}}}).to_string();
    let schema = Schema::parse_input_built(&pattern, Building::AtFirstUse).unwrap();
    assert_eq!(schema.validate_at_once(&json!({})), None);
    assert_eq!(schema.validate(&json!({})), Ok(()));
    assert_eq!(schema.validate_at_once(&json!({})), Some(Ok(())));
    let small = Schema::parse_input_built(r#"{"type":"object"}"#, Building::AtFirstUse).unwrap();
    assert_eq!(small.validate_at_once(&json!({})), Some(Ok(())));
}

#[test]
fn slow_validation_is_not_done_immediately() {
    let schema = Schema::output(json!({"items": {"type": "integer"}})).unwrap();
    assert_eq!(schema.validate_at_once(&list(1000, |_| json!(1))), Some(Ok(())));
    let wrong = schema.validate_at_once(&json!([1, "2"])).unwrap().unwrap_err();
    assert_eq!(wrong.to_string(), "`/1`: want integer, got string");
    assert_eq!(schema.validate_at_once(&list(100_000, |_| json!(1))), None);
}

#[test]
fn error_about_many_names_is_fast() {
    let closed = all_of(900, json!({"additionalProperties": false}));
    let value = object(50_000, |at| format!("n{at:05}"));
    let said = complaint(closed, &value);
    assert_eq!(said, "\"n00000\", \"n00001\", \"n00002\" and 49997 more are not accepted here");
    let long: Map<String, Value> =
        [("const".to_owned(), list(50_000, |_| json!(1)))].into_iter().collect();
    let said = complaint(json!({"items": long}), &list(300, |_| json!([])));
    assert!(said.starts_with("`/0`: want [1,1,1") && said.len() < 4 << 10, "{said:.100}");
}

#[test]
fn unicode_word_boundary_has_a_higher_price() {
    let charged = |pattern: &str| {
        let schema = Schema::output(json!({"type": "string", "pattern": pattern})).unwrap();
        steps(&schema, &json!("é".repeat(1000)))
    };
    assert!(charged(r"^\bé*$") >= 3 * charged("^é*$"));
}

#[test]
fn patterns_with_inline_flags_are_refused() {
    let judge = |pattern: &str| Schema::output(json!({"type": "string", "pattern": pattern}));
    for pattern in ["(?i)a", "a(?i:b)", "(?-u:b)", "[a](?s).", r"\\(?x)a", "[^](?i)]"] {
        let refused = judge(pattern).unwrap_err().to_string();
        assert!(refused.contains("inline flags"), "{pattern}: {refused}");
    }
    for pattern in ["(?:a)", r"\(?i", "[(?i]", "(?P<name>a)", "(?<name>a)", "a??"] {
        assert!(judge(pattern).is_ok(), "{pattern}");
    }
}

/// Classes that leave nothing in the compiled pattern take time to compile all the same.
#[test]
fn text_of_patterns_is_bounded_for_a_schema() {
    let pattern = |number: usize| format!("(?:{}){{0}}x{number}", r"\p{L}".repeat(800));
    let properties = |count: usize| -> Map<String, Value> {
        (0..count).map(|at| (format!("p{at}"), json!({"pattern": pattern(at)}))).collect()
    };
    assert!(Schema::output(json!({"properties": properties(15)})).is_ok());
    let refused = Schema::output(json!({"properties": properties(20)})).unwrap_err().to_string();
    assert!(refused.contains("64 KiB of text"), "{refused}");
}
