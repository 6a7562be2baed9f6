//! Text in JSON that a reader would not see: a schema, and what it says of itself, reaches a model as it is.

use serde_json::{Map, Value};

use super::error::SchemaError;
use super::outline::join;
use crate::text::{deceptive, first_deceptive};

/// The keywords whose text is there to be read.
const PROSE: &[&str] = &["title", "description", "$comment"];

/// A character that hides something, and the way to it as a JSON pointer.
type Found = (String, char);

/// Refuses a schema in which something hides. Its depth has been bounded before.
pub(super) fn refuse(schema: &Value) -> Result<(), SchemaError> {
    match in_value(schema) {
        Some((pointer, character)) => Err(SchemaError::Hidden { pointer, character: character.into() }),
        None => Ok(()),
    }
}

fn in_value(value: &Value) -> Option<Found> {
    match value {
        Value::String(text) => found(hides_in_json(text)),
        Value::Array(values) => {
            values.iter().enumerate().find_map(|(index, value)| below(&index.to_string(), in_value(value)))
        }
        Value::Object(members) => in_object(members),
        _ => None,
    }
}

/// The first character in an object that hides something, and the way to it as a JSON pointer. The depth of the object must be bounded.
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

/// What hides although JSON writes control characters as escapes: in a constant or a default, a line ending or an escape may be meant.
fn hides_in_json(text: &str) -> Option<char> {
    deceptive(text).find(|c| *c >= ' ')
}
