//! TypeScript types of JSON Schemas.

use crate::comment::sentence;
use serde_json::{Map, Value};

/// The type of what is too deep, too long or unknown.
const UNKNOWN: &str = "unknown";

/// The most schemas inside each other that get a type.
const DEPTH: usize = 8;

/// The most members of a union, and the most properties of an object, that get a type.
const MEMBERS: usize = 64;

/// The most characters of a text that is a type of its own.
const LITERAL: usize = 120;

/// Writes the types of one schema.
pub(crate) struct Types<'a> {
    root: &'a Value,
    /// The bytes that the rest may take.
    left: usize,
    /// The most characters of the comment of a property.
    comment: usize,
}

impl<'a> Types<'a> {
    /// Begins the types of this schema, in about this number of bytes, with comments of at most
    /// this number of characters.
    pub(crate) fn of(root: &'a Value, bytes: usize, comment: usize) -> Self {
        Self { root, left: bytes, comment }
    }

    /// Returns the type of the schema.
    pub(crate) fn root(&mut self) -> String {
        self.typed(self.root, 0)
    }

    /// Returns the parameters of a function with this input: one object, which may be left out if
    /// no property is required.
    pub(crate) fn arguments(&mut self) -> String {
        let is_required = self.root["required"].as_array().is_some_and(|names| !names.is_empty());
        let mark = if is_required { "" } else { "?" };
        format!("input{mark}: {}", self.root())
    }

    fn typed(&mut self, schema: &'a Value, depth: usize) -> String {
        let text = match schema {
            Value::Object(members) if depth < DEPTH && self.left > 0 => {
                self.of_members(members, depth)
            }
            _ => UNKNOWN.to_owned(),
        };
        self.left = self.left.saturating_sub(text.len());
        text
    }

    fn of_members(&mut self, schema: &'a Map<String, Value>, depth: usize) -> String {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            return match self.resolved(target) {
                Some(target) => self.typed(target, depth + 1),
                None => UNKNOWN.to_owned(),
            };
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return union(values.iter().take(MEMBERS).map(literal));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(keyword).and_then(Value::as_array) {
                let choices = choices.iter().take(MEMBERS);
                return union(
                    choices.map(|choice| self.typed(choice, depth + 1)).collect::<Vec<_>>(),
                );
            }
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.of_name(name, schema, depth),
            Some(Value::Array(names)) => {
                let names = names.iter().take(MEMBERS).filter_map(Value::as_str);
                let types: Vec<String> =
                    names.map(|name| self.of_name(name, schema, depth)).collect();
                union(types)
            }
            _ if schema.contains_key("properties") => self.object(schema, depth),
            _ => UNKNOWN.to_owned(),
        }
    }

    fn of_name(&mut self, name: &str, schema: &'a Map<String, Value>, depth: usize) -> String {
        match name {
            "string" => "string".to_owned(),
            "number" | "integer" => "number".to_owned(),
            "boolean" => "boolean".to_owned(),
            "null" => "null".to_owned(),
            "array" => {
                let item = schema.get("items").map(|items| self.typed(items, depth + 1));
                let item = item.unwrap_or_else(|| UNKNOWN.to_owned());
                match item.contains([' ', '|']) && !item.starts_with('{') {
                    true => format!("({item})[]"),
                    false => format!("{item}[]"),
                }
            }
            "object" => self.object(schema, depth),
            _ => UNKNOWN.to_owned(),
        }
    }

    fn object(&mut self, schema: &'a Map<String, Value>, depth: usize) -> String {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return match schema.get("additionalProperties") {
                Some(Value::Object(_)) => {
                    let value = self.typed(&schema["additionalProperties"], depth + 1);
                    format!("Record<string, {value}>")
                }
                _ => "{}".to_owned(),
            };
        };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|required| required.iter().any(|it| it.as_str() == Some(name)))
        };
        let mut members = Vec::new();
        // The required ones first, which a caller has to know.
        let (first, rest): (Vec<_>, Vec<_>) =
            properties.iter().partition(|(name, _)| is_required(name));
        for (name, property) in first.into_iter().chain(rest).take(MEMBERS) {
            let mark = if is_required(name) { "" } else { "?" };
            let words = property["description"].as_str().unwrap_or_default();
            let comment = match sentence(words, self.comment) {
                words if words.is_empty() => words,
                words => format!("/** {words} */ "),
            };
            self.left = self.left.saturating_sub(comment.len() + name.len());
            let value = self.typed(property, depth + 1);
            members.push(format!("{comment}{}{mark}: {value}", key(name)));
        }
        format!("{{ {} }}", members.join("; "))
    }

    /// Returns the schema that a reference of this document leads to.
    fn resolved(&self, target: &str) -> Option<&'a Value> {
        self.root.pointer(target.strip_prefix('#')?)
    }
}

fn union(types: impl IntoIterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for one in types {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    match distinct.is_empty() || distinct.iter().any(|one| one == UNKNOWN) {
        true => UNKNOWN.to_owned(),
        false => distinct.join(" | "),
    }
}

/// Returns a value as a literal type.
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() <= LITERAL => value.to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) | Value::Object(_) => UNKNOWN.to_owned(),
    }
}

/// Returns the name of a property, in quotes unless it is an identifier.
fn key(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    let begins = name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    match begins && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => Value::from(name).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::Types;
    use serde_json::{Value, json};

    fn typed(schema: &Value) -> String {
        Types::of(schema, 4_000, 120).root()
    }

    #[test]
    fn types_follow_the_schema() {
        for (schema, expected) in [
            (json!({"type": "string"}), "string"),
            (json!({"type": "integer"}), "number"),
            (json!({"type": ["string", "null"]}), "string | null"),
            (json!({"type": "array", "items": {"type": "string"}}), "string[]"),
            (json!({"type": "array", "items": {"enum": ["a", 1]}}), "(\"a\" | 1)[]"),
            (json!({"type": "array"}), "unknown[]"),
            (json!({"const": true}), "true"),
            (json!({"anyOf": [{"type": "string"}, {"type": "number"}]}), "string | number"),
            (json!({"anyOf": [{"type": "string"}, {}]}), "unknown"),
            (
                json!({"type": "object", "additionalProperties": {"type": "number"}}),
                "Record<string, number>",
            ),
            (json!(true), "unknown"),
        ] {
            assert_eq!(typed(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn required_properties_come_first_with_their_comments() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "z-1": {"type": "number", "description": "The\nnumber."},
            },
            "required": ["z-1"],
        });
        assert_eq!(typed(&schema), "{ /** The number. */ \"z-1\": number; a?: string }");
    }

    #[test]
    fn references_are_followed_to_a_depth() {
        let schema = json!({
            "$ref": "#/$defs/node",
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        });
        let text = typed(&schema);
        assert!(text.starts_with("{ next?: { next?: "), "{text}");
        assert!(text.contains("unknown") && text.len() < 200, "{text}");
    }

    #[test]
    fn hostile_schema_has_a_short_type() {
        let many: serde_json::Map<String, Value> =
            (0..10_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        assert!(typed(&json!({"type": "object", "properties": many})).len() < 4_000);
        let node = json!({"anyOf": (0..60).map(|_| json!({"$ref": "#"})).collect::<Vec<_>>()});
        assert!(typed(&node).len() < 8_000);
    }
}
