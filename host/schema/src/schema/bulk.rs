//! The bounds on the length and depth of a schema.

use serde_json::{Map, Value};

use super::error::SchemaError;
use super::{MAX_DEPTH, MAX_SCHEMA, pointer};
use crate::json::{JsonBounds, parse_bounded};

/// Parses a text within the bounds.
pub(super) fn parse(text: &str) -> Result<Value, SchemaError> {
    // Every member takes at least two bytes, so the length bounds their number.
    let bounds = JsonBounds { bytes: MAX_SCHEMA, depth: MAX_DEPTH, members: MAX_SCHEMA };
    Ok(parse_bounded(text, bounds)?)
}

/// Bounds a schema given as a value, as [`parse`] bounds a text. Returns the length of its text, in
/// bytes.
pub(super) fn refuse(value: &Value) -> Result<usize, SchemaError> {
    refuse_depth(value, MAX_DEPTH, &mut String::new())?;
    let length = value.to_string().len();
    if length > MAX_SCHEMA {
        return Err(SchemaError::TooMuch {
            what: "too many bytes",
            max: MAX_SCHEMA,
            pointer: String::new(),
        });
    }
    Ok(length)
}

fn refuse_depth(value: &Value, left: usize, pointer: &mut String) -> Result<(), SchemaError> {
    let refuse_members = |members: &Map<String, Value>, left, pointer: &mut String| {
        members.iter().try_for_each(|(name, value)| refuse_inside(value, left, pointer, name))
    };
    match (value, left.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => Err(SchemaError::TooMuch {
            what: "too many levels",
            max: MAX_DEPTH,
            pointer: pointer.clone(),
        }),
        (Value::Array(values), Some(left)) => values
            .iter()
            .enumerate()
            .try_for_each(|(at, value)| refuse_inside(value, left, pointer, &at.to_string())),
        (Value::Object(members), Some(left)) => refuse_members(members, left, pointer),
        _ => Ok(()),
    }
}

fn refuse_inside(
    value: &Value,
    left: usize,
    pointer: &mut String,
    token: &str,
) -> Result<(), SchemaError> {
    let length = pointer.len();
    pointer::push_token(pointer, token);
    refuse_depth(value, left, pointer)?;
    pointer.truncate(length);
    Ok(())
}
