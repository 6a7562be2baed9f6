//! Tests of schemas: accepted and refused ones, and the messages of violations.
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may stop at the first surprise, and reads best with plain values"
)]

mod absent;
mod bounds;
mod charges;
mod hidden_work;
mod matching;
mod meaning;
mod paths;
mod refusals;
mod sizes;
mod validation;

use serde_json::{Value, json};

use super::{Schema, SchemaError};

fn refusal(schema: Value) -> SchemaError {
    Schema::output(schema).unwrap_err()
}

/// Returns an input schema with one property `x`.
fn with_x(x: Value) -> Value {
    json!({"type": "object", "properties": {"x": x}})
}

/// Returns the text of the violations of `value`.
fn complaint(schema: Value, value: &Value) -> String {
    Schema::output(schema).unwrap().validate(value).unwrap_err().to_string()
}
