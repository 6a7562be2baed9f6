//! The keywords with subschemas, and the values that these apply to.

use serde_json::Value;

/// The accepted dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Draft 2020-12, also the default without `$schema`.
    Draft202012,
    /// Draft-07.
    Draft07,
}

impl Dialect {
    /// Returns the dialect of a `$schema` value.
    pub(super) fn of(uri: Option<&Value>) -> Option<Self> {
        let Some(uri) = uri else { return Some(Self::Draft202012) };
        match uri.as_str()?.trim_end_matches('#') {
            "https://json-schema.org/draft/2020-12/schema" => Some(Self::Draft202012),
            "http://json-schema.org/draft-07/schema"
            | "https://json-schema.org/draft-07/schema" => Some(Self::Draft07),
            _ => None,
        }
    }

    /// Returns the name of the dialect for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft202012 => "2020-12",
            Self::Draft07 => "draft-07",
        }
    }
}

/// The values that the subschemas of a keyword apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The same value as the schema that holds the keyword.
    Same,
    /// Values inside it.
    Inside,
    /// None directly; the subschemas are only referenced.
    Stored,
}

/// The form in which a keyword holds its subschemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One schema.
    One,
    /// An array of schemas.
    List,
    /// An object whose values are schemas.
    Map,
}

/// Returns the form of the subschemas of `keyword` in `dialect`; `None` for assertions, annotations
/// and unknown keywords.
#[must_use]
pub fn holds(keyword: &str, value: &Value, dialect: Dialect) -> Option<(Shape, Reach)> {
    use {Reach::*, Shape::*};
    Some(match keyword {
        "allOf" | "anyOf" | "oneOf" => (List, Same),
        "not" | "if" | "then" | "else" => (One, Same),
        "properties" | "patternProperties" => (Map, Inside),
        "additionalProperties" | "propertyNames" | "contains" | "additionalItems" => (One, Inside),
        "items" if value.is_array() => (List, Inside),
        "items" => (One, Inside),
        "dependencies" => (Map, Same),
        "$defs" | "definitions" => (Map, Stored),
        _ if dialect == Dialect::Draft07 => return None,
        "dependentSchemas" => (Map, Same),
        "prefixItems" => (List, Inside),
        "unevaluatedItems" | "unevaluatedProperties" => (One, Inside),
        "contentSchema" => (One, Stored),
        _ => return None,
    })
}

/// Returns whether the keyword accesses each value that its schema applies to.
pub(super) fn looks(keyword: &str) -> bool {
    matches!(
        keyword,
        "type"
            | "enum"
            | "const"
            | "multipleOf"
            | "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "minLength"
            | "maxLength"
            | "pattern"
            | "minItems"
            | "maxItems"
            | "minProperties"
            | "maxProperties"
            | "required"
    )
}

/// Returns the accepted form of a keyword's value, for error messages.
pub(super) fn accepted(keyword: &str) -> &'static str {
    match keyword {
        "type" => {
            "one of \"string\", \"integer\", \"number\", \"boolean\", \"object\", \"array\", \"null\", or an array of them"
        }
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            "an object of schemas"
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => "a nonempty array of schemas",
        "items" => "a schema (for a tuple: `prefixItems`)",
        "not"
        | "if"
        | "then"
        | "else"
        | "additionalProperties"
        | "propertyNames"
        | "contains"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => "a schema: an object, true or false",
        "required" => {
            "an array of different strings, beside `properties` and not inside a property"
        }
        "dependentRequired" => "an object of arrays of different strings",
        "enum" | "examples" => "an array",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => "a number",
        "multipleOf" => "a number above 0",
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => "an integer from 0",
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => "true or false",
        "$ref" | "pattern" | "format" | "title" | "description" | "$comment" | "$anchor"
        | "contentEncoding" | "contentMediaType" => "a string",
        _ => "what the JSON Schema specification says of it",
    }
}
