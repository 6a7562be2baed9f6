//! Tests of the plugin's contract: the class, the input, and errors that name the field.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::calculate;
use palisade_guest::{SideEffects, testing};
use serde_json::json;

#[test]
fn only_the_expression_is_required() {
    let (definition, schema) =
        (testing::definition::<calculate>(), testing::input_schema::<calculate>());
    assert_eq!((definition.side_effects, definition.idempotent), (SideEffects::None, true));
    assert_eq!(schema["required"], json!(["expression"]));
    assert!(schema["properties"]["expression"]["description"].is_string());
}

#[test]
fn call_returns_a_number_or_a_field_error() {
    let call = |expression: &str| testing::call::<calculate>(json!({ "expression": expression }));
    assert_eq!(call("0.1 + 0.2").unwrap().to_text(), "0.30000000000000004");
    assert_eq!(call("2 ^ 53").unwrap().to_text(), "9007199254740992");
    assert_eq!(call("1 /").unwrap_err().field(), Some("expression"));
}
