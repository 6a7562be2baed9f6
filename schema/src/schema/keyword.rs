//! Which keywords hold subschemas, and what these apply to.

use serde_json::Value;

/// The dialects that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Draft 2020-12, which is also meant where `$schema` is absent.
    Draft202012,
    /// Draft-07.
    Draft07,
}

impl Dialect {
    /// Reads `$schema`.
    pub(super) fn of(uri: Option<&Value>) -> Option<Self> {
        let Some(uri) = uri else { return Some(Self::Draft202012) };
        match uri.as_str()?.trim_end_matches('#') {
            "https://json-schema.org/draft/2020-12/schema" => Some(Self::Draft202012),
            "http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema" => Some(Self::Draft07),
            _ => None,
        }
    }

    /// The dialect's name in a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft202012 => "2020-12",
            Self::Draft07 => "draft-07",
        }
    }
}

/// What the subschemas of a keyword apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The same value as the schema that holds the keyword.
    Same,
    /// Values inside it.
    Inside,
    /// Nothing by itself: something has to refer to them.
    Stored,
}

/// Where a keyword keeps its subschemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The keyword's value is one schema.
    One,
    /// It is an array of schemas.
    List,
    /// It is an object whose values are schemas.
    Map,
}

/// What `keyword` holds in `dialect`; `None` for assertions, annotations and unknown keywords.
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

/// Whether the keyword looks at each value that its schema judges.
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

/// What a keyword's value has to be, for the refusal of one that is something else.
pub(super) fn accepted(keyword: &str) -> &'static str {
    match keyword {
        "type" => {
            "one of \"string\", \"integer\", \"number\", \"boolean\", \"object\", \"array\", \"null\", or an array of them"
        }
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => "an object of schemas",
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
        "required" => "an array of different strings, beside `properties` and not inside a property",
        "dependentRequired" => "an object of arrays of different strings",
        "enum" | "examples" => "an array",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => "a number",
        "multipleOf" => "a number above 0",
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
        | "maxContains" => "an integer from 0",
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => "true or false",
        "$ref" | "pattern" | "format" | "title" | "description" | "$comment" | "$anchor" | "contentEncoding"
        | "contentMediaType" => "a string",
        _ => "what the JSON Schema specification says of it",
    }
}
