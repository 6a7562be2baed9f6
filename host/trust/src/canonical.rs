//! The canonical text of a JSON value: members sorted by the bytes of their names, no white space.

use serde_json::Value;

/// Appends the canonical text of a value. Equal values have equal texts, in whatever order their
/// members were written.
pub(crate) fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(index, text);
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            // The order of `serde_json::Map` depends on a feature that any crate can switch on.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                separate(index, text);
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(member, text);
            }
            text.push('}');
        }
    }
}

fn separate(index: usize, text: &mut String) {
    if index > 0 {
        text.push(',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn order_of_members_does_not_matter_and_that_of_items_does() {
        let of = |value: &Value| {
            let mut text = String::new();
            write(value, &mut text);
            text
        };
        let text = r#"{"b": [1, 2], "a": {"d": "\u0000\"", "c": null}}"#;
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        assert_eq!(of(&value), r#"{"a":{"c":null,"d":"\u0000\""},"b":[1,2]}"#);
        assert_ne!(of(&json!([1, 2])), of(&json!([2, 1])));
        assert_ne!(of(&json!({"a": 1})), of(&json!({"a": 1.0})));
    }
}
