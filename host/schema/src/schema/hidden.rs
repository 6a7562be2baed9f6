//! Finds deceptive characters in JSON, since schemas and annotations reach a model unmodified.

use serde_json::{Map, Value};

use super::error::SchemaError;
use super::pointer::join;
use crate::text::{deceptive, first_deceptive};

/// The keywords with text for readers.
const PROSE: &[&str] = &["title", "description", "$comment"];

/// A deceptive character and the JSON pointer to it.
type Found = (String, char);

/// Refuses a schema with deceptive characters. The caller has bounded its depth.
pub(super) fn refuse(schema: &Value) -> Result<(), SchemaError> {
    match in_value(schema) {
        Some((pointer, character)) => {
            Err(SchemaError::Hidden { pointer, character: character.into() })
        }
        None => Ok(()),
    }
}

fn in_value(value: &Value) -> Option<Found> {
    match value {
        Value::String(text) => found(hides_in_json(text)),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .find_map(|(index, value)| below(&index.to_string(), in_value(value))),
        Value::Object(members) => in_object(members),
        _ => None,
    }
}

/// Returns the first deceptive character in an object and the JSON pointer to it. The depth of the
/// object must be bounded.
#[must_use]
pub fn in_object(members: &Map<String, Value>) -> Option<(String, char)> {
    members.iter().find_map(|(key, value)| {
        let inside = match value {
            Value::String(text) if PROSE.contains(&key.as_str()) => found(first_deceptive(text)),
            value => in_value(value),
        };
        below(key, found(hides_in_json(key)).or(inside))
    })
}

fn below(key: &str, found: Option<Found>) -> Option<Found> {
    found.map(|(pointer, character)| (join("", key) + &pointer, character))
}

fn found(hidden: Option<char>) -> Option<Found> {
    hidden.map(|c| (String::new(), c))
}

/// Returns the first deceptive character of a JSON string, except C0 control characters: JSON
/// escapes them, and a constant or default may need them.
fn hides_in_json(text: &str) -> Option<char> {
    deceptive(text).find(|c| *c >= ' ')
}
