//! Checks whether a schema is in a provider's strict subset.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::references::{StepBudget, has_recursion};
use palisade_schema::schema::{Dialect, Shape, holds, join};

/// The rules of a provider's strict mode.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) keywords: &'static [&'static str],
    pub(super) formats: &'static [&'static str],
    /// True if every property must be required.
    requires_all_members: bool,
    /// True if a `$ref` may be recursive.
    allows_recursion: bool,
    limits: Limits,
}

/// Limits from OpenAI's documentation. Anthropic publishes none, so OpenAI's are used for both.
#[derive(Debug)]
struct Limits {
    properties: usize,
    depth: usize,
    enum_values: usize,
    characters: usize,
}

const LIMITS: Limits =
    Limits { properties: 5_000, depth: 10, enum_values: 1_000, characters: 120_000 };

/// OpenAI's Structured Outputs.
pub(super) static OPENAI: Rules = Rules {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "$ref",
        "$defs",
        "title",
        "description",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    requires_all_members: true,
    allows_recursion: true,
    limits: LIMITS,
};

/// Anthropic's strict mode: the keywords that Anthropic's own libraries keep.
pub(super) static ANTHROPIC: Rules = Rules {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "allOf",
        "$ref",
        "$defs",
        "title",
        "description",
        "format",
        "minItems",
    ],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    requires_all_members: false,
    allows_recursion: false,
    limits: LIMITS,
};

/// The reason why a schema cannot be strict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) pointer: String,
    pub(super) explanation: &'static str,
}

impl Rules {
    /// Checks a schema; the error is its first violation of strict mode.
    pub(super) fn check(&self, schema: &Value) -> Result<(), Reason> {
        let mut checker = Checker { rules: self, properties: 0, enum_values: 0, characters: 0 };
        let at_root = |explanation| Err(Reason { pointer: String::new(), explanation });
        if schema.get("type") != Some(&json!("object")) || schema.get("anyOf").is_some() {
            return at_root("its root has to be an object without alternatives");
        }
        if !self.allows_recursion && has_recursion(schema, &mut StepBudget::new()) {
            return at_root("it is recursive");
        }
        checker.check_schema(schema, "", 1)?;
        checker.find_exceeded_limit().map_or(Ok(()), at_root)
    }
}

/// Counts the quantities that a provider limits over a whole schema.
struct Checker<'r> {
    rules: &'r Rules,
    properties: usize,
    enum_values: usize,
    characters: usize,
}

impl Checker<'_> {
    fn check_schema(&mut self, schema: &Value, pointer: &str, depth: usize) -> Result<(), Reason> {
        let refuse = |explanation| Err(Reason { pointer: pointer.to_owned(), explanation });
        let Some(keywords) = schema.as_object() else {
            return refuse("a schema that is true or false says no type");
        };
        if let Some(explanation) = self.find_violation(keywords, depth) {
            return refuse(explanation);
        }
        if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
            self.enum_values = self.enum_values.saturating_add(values.len());
            self.characters = values
                .iter()
                .filter_map(Value::as_str)
                .fold(self.characters, |sum, text| sum.saturating_add(text.len()));
        }
        keywords.iter().try_for_each(|(keyword, value)| {
            self.check_subschemas(keyword, value, &join(pointer, keyword), depth)
        })
    }

    fn check_subschemas(
        &mut self,
        keyword: &str,
        value: &Value,
        place: &str,
        depth: usize,
    ) -> Result<(), Reason> {
        // Alternatives and definitions count at the depth of their schema.
        let deeper =
            if matches!(keyword, "properties" | "items") { depth.saturating_add(1) } else { depth };
        match (holds(keyword, value, Dialect::Draft202012), value) {
            (Some((Shape::Map, _)), Value::Object(map)) => {
                self.properties = self.properties.saturating_add(if keyword == "properties" {
                    map.len()
                } else {
                    0
                });
                self.characters =
                    map.keys().fold(self.characters, |sum, name| sum.saturating_add(name.len()));
                map.iter().try_for_each(|(name, value)| {
                    self.check_schema(value, &join(place, name), deeper)
                })
            }
            (Some((Shape::List, _)), Value::Array(list)) => {
                list.iter().enumerate().try_for_each(|(at, value)| {
                    self.check_schema(value, &join(place, &at.to_string()), deeper)
                })
            }
            (Some((Shape::One, _)), value) if keyword != "additionalProperties" => {
                self.check_schema(value, place, deeper)
            }
            _ => Ok(()),
        }
    }

    fn find_violation(&self, keywords: &Map<String, Value>, depth: usize) -> Option<&'static str> {
        let rules = self.rules;
        let unknown =
            |format: &Value| format.as_str().is_none_or(|format| !rules.formats.contains(&format));
        if keywords.keys().any(|keyword| !rules.keywords.contains(&keyword.as_str())) {
            return Some("a keyword is left that strict mode does not know");
        }
        if keywords.get("format").is_some_and(unknown) {
            return Some("a format is left that strict mode does not know");
        }
        if depth > rules.limits.depth {
            return Some("it nests more than 10 levels of objects and arrays");
        }
        match keywords.get("$ref").and_then(Value::as_str) {
            Some(reference) if reference != "#" && !reference.starts_with("#/$defs/") => {
                Some("a reference leads elsewhere than to `$defs`")
            }
            Some(_) if keywords.keys().any(|keyword| keyword != "$ref" && keyword != "$defs") => {
                Some("something stands beside a `$ref`")
            }
            Some(_) => None,
            None if ["type", "anyOf", "allOf", "enum", "const"]
                .iter()
                .all(|keyword| !keywords.contains_key(*keyword)) =>
            {
                Some("a schema says no type")
            }
            None => {
                rules.find_object_violation(keywords).or_else(|| find_array_violation(keywords))
            }
        }
    }

    fn find_exceeded_limit(&self) -> Option<&'static str> {
        let limits = &self.rules.limits;
        if self.properties > limits.properties {
            return Some("it has more than 5,000 properties");
        }
        if self.enum_values > limits.enum_values {
            return Some("it has more than 1,000 values in enums");
        }
        (self.characters > limits.characters)
            .then_some("its names and enums have more than 120,000 characters")
    }
}

impl Rules {
    fn find_object_violation(&self, keywords: &Map<String, Value>) -> Option<&'static str> {
        if !names_type(keywords, "object") && !keywords.contains_key("properties") {
            return None;
        }
        let Some(properties) = keywords.get("properties").and_then(Value::as_object) else {
            return Some("an object does not say what members it has");
        };
        if keywords.get("additionalProperties") != Some(&json!(false)) {
            return Some("an object does not say `\"additionalProperties\": false`");
        }
        let required: HashSet<&str> = required_names(keywords).collect();
        let optional = properties.keys().any(|name| !required.contains(name.as_str()));
        (self.requires_all_members && optional).then_some("a property is not required")
    }
}

/// Returns the names in `required`.
pub(super) fn required_names(keywords: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let names = keywords.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn find_array_violation(keywords: &Map<String, Value>) -> Option<&'static str> {
    match keywords.get("items") {
        Some(Value::Array(_)) => Some("an array is a tuple"),
        None if names_type(keywords, "array") => Some("an array does not say what its items are"),
        _ => None,
    }
}

fn names_type(keywords: &Map<String, Value>, name: &str) -> bool {
    match keywords.get("type") {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(kinds)) => kinds.contains(&json!(name)),
        _ => false,
    }
}
