//! The canonical text of a JSON value: members sorted by the bytes of their names, no white space.

use serde_json::Value;

/// A canonical text that is being written.
#[derive(Default)]
pub(crate) struct Canonical(Vec<u8>);

impl Canonical {
    /// Returns the bytes of the text.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends a value. Equal values have equal texts, in whatever order their members were
    /// written.
    pub(crate) fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.0.extend_from_slice(b"null"),
            Value::Bool(value) => self.flag(*value),
            Value::Number(number) => self.0.extend_from_slice(number.to_string().as_bytes()),
            Value::String(text) => self.text(text),
            Value::Array(items) => self.list(items, Self::value),
            Value::Object(members) => self.object(members.iter(), Self::value),
        }
    }

    /// Appends an object whose members are written by a function. The order of `serde_json::Map`
    /// depends on a feature that any crate can switch on, so that they are sorted here.
    pub(crate) fn object<'a, T>(
        &mut self,
        members: impl Iterator<Item = (&'a String, T)>,
        write: impl Fn(&mut Self, T),
    ) {
        let mut members: Vec<_> = members.collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        self.0.push(b'{');
        for (index, (name, member)) in members.into_iter().enumerate() {
            self.separate(index);
            self.text(name);
            self.0.push(b':');
            write(self, member);
        }
        self.0.push(b'}');
    }

    /// Appends an array whose items are written by a function.
    pub(crate) fn list<'a, T: 'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a T>,
        write: impl Fn(&mut Self, &'a T),
    ) {
        self.0.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            self.separate(index);
            write(self, item);
        }
        self.0.push(b']');
    }

    /// Appends a text in quotes.
    pub(crate) fn text(&mut self, text: &str) {
        // Writing into a vector does not fail.
        let _ = serde_json::to_writer(&mut self.0, text);
    }

    /// Appends a text, or `null`.
    pub(crate) fn optional_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.text(text),
            None => self.value(&Value::Null),
        }
    }

    /// Appends `true` or `false`.
    pub(crate) fn flag(&mut self, value: bool) {
        self.0.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.0.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: &Value) -> String {
        let mut canonical = Canonical::default();
        canonical.value(value);
        String::from_utf8_lossy(canonical.as_bytes()).into_owned()
    }

    #[test]
    fn order_of_members_does_not_matter_and_that_of_items_does() {
        let text = r#"{"b": [1, 2], "a": {"d": "\u0000\"", "c": null}}"#;
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        assert_eq!(of(&value), r#"{"a":{"c":null,"d":"\u0000\""},"b":[1,2]}"#);
        assert_ne!(of(&json!([1, 2])), of(&json!([2, 1])));
        assert_ne!(of(&json!({"a": 1})), of(&json!({"a": 1.0})));
        assert_ne!(of(&json!({"a": true})), of(&json!({"a": "true"})));
    }
}
