//! JSON text for a guest.

use serde_json::{Map, Value};
use std::borrow::Cow;

/// Serialises a value to JSON text, without an allocation for an empty object.
pub(super) fn compact(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Object(map) => compact_object(map),
        other => Cow::Owned(other.to_string()),
    }
}

/// Serialises an object, as [`compact`] does.
pub(super) fn compact_object(map: &Map<String, Value>) -> Cow<'static, str> {
    if map.is_empty() {
        Cow::Borrowed("{}")
    } else {
        Cow::Owned(serde_json::to_string(map).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_a_guest_is_compact() {
        for (value, text) in [
            (serde_json::json!({}), "{}"),
            (serde_json::json!({"a": [1]}), r#"{"a":[1]}"#),
            (Value::Null, "null"),
        ] {
            assert_eq!(compact(&value), text);
        }
    }
}
