//! The memory of patterns: that of values belongs to the call, that of names is bounded at load.

use serde_json::{Map, Value, json};

use super::super::{Schema, SchemaError};
use super::charges::{Ends, within};
use super::{complaint, refusal};
use crate::budget::Exhausted;

/// Returns a text for which an automaton of `[ab]*a[ab]{40}` makes a new state for each character.
fn without_repetition() -> String {
    let mut bits = 1_u32;
    let next = |_| {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if bits >> 31 == 0 { 'a' } else { 'b' }
    };
    (0..5_000).map(next).collect()
}

#[test]
fn automaton_of_a_value_is_counted_and_released() {
    let schema = json!({"pattern": "^[ab]*a[ab]{40}[c-p]$"});
    let text = json!(without_repetition());
    let ends = Ends::after(u64::MAX, u64::MAX);
    assert_eq!(within(&ends, schema.clone(), &text), Ok(false));
    assert!(ends.most() >= 512 << 10, "{}", ends.most());
    assert_eq!(ends.held(), 0);
    let poor = within(&Ends::after(u64::MAX, 256 << 10), schema, &text);
    assert_eq!(poor, Err(Exhausted::CallMemory { limit: 256 << 10 }));
}

#[test]
fn working_memory_of_name_patterns_is_bounded_at_load() {
    // The engine keeps the position of each group for each state.
    let groups = json!({"patternProperties": {"(a)".repeat(1000): true}});
    assert!(matches!(refusal(groups), SchemaError::Pattern { .. }));
    assert!(Schema::output(json!({"pattern": "(a)".repeat(1000)})).is_ok());
    // It keeps them for each place of the same pattern.
    let part =
        json!({"patternProperties": {"^[a-z]{200}(a|b)": true}, "additionalProperties": false});
    let parts = |count: usize| -> Value {
        let all: Map<_, _> = (0..count).map(|at| (format!("p{at}"), part.clone())).collect();
        json!({"properties": all})
    };
    assert!(Schema::output(parts(50)).is_ok());
    assert!(matches!(refusal(parts(600)), SchemaError::Pattern { .. }));
}

#[test]
fn states_of_other_patterns_do_not_disturb_a_match() {
    let schemas: Vec<Schema> = (0..20)
        .map(|at| Schema::output(json!({"items": {"pattern": format!("^x{{{at}}}y?$")}})).unwrap())
        .collect();
    for _ in 0..3 {
        for (at, schema) in schemas.iter().enumerate() {
            let right = json!(["x".repeat(at), "x".repeat(at) + "y"]);
            assert_eq!(schema.validate(&right), Ok(()));
            assert!(schema.validate(&json!(["x".repeat(at + 1)])).is_err());
        }
    }
    let said = complaint(json!({"pattern": "^[0-9]{4}$"}), &json!("é"));
    assert_eq!(said, "want a text that matches the pattern ^[0-9]{4}$");
}
