//! The error type of schemas.

use crate::json::JsonError;

/// The reason why a schema was refused. Each variant gives the position as a JSON pointer into the
/// schema, and the accepted alternative.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is not valid JSON or exceeds its bounds.
    #[error("the schema cannot be read: {0}")]
    Text(#[from] JsonError),
    /// The root of an input schema is not an object schema.
    #[error(
        "an input schema describes an object: want `\"type\": \"object\"` at its root, got {got}"
    )]
    RootNotObject {
        /// The actual type.
        got: String,
    },
    /// A schema is neither an object nor a boolean.
    #[error("`{pointer}` is {got}; a schema is an object, or true or false")]
    NotASchema {
        /// The position.
        pointer: String,
        /// The actual type.
        got: &'static str,
    },
    /// `$schema` names an unknown dialect.
    #[error(
        "`$schema` at `{pointer}` is not accepted; leave it out, or set it at the root to \
        \"https://json-schema.org/draft/2020-12/schema\" or \"http://json-schema.org/draft-07/schema#\""
    )]
    Dialect {
        /// The position.
        pointer: String,
    },
    /// The meaning of the keyword depends on something outside the schema.
    #[error("`{keyword}` at `{pointer}` is not accepted; {instead}")]
    Keyword {
        /// The keyword.
        keyword: &'static str,
        /// The position.
        pointer: String,
        /// The accepted alternative.
        instead: &'static str,
    },
    /// A `$ref` does not lead to a schema of the same document.
    #[error(
        "`$ref` at `{pointer}` leads nowhere: {target:?} {why}; accepted are \"#\", \"#/$defs/NAME\" and \"#ANCHOR\" of this schema"
    )]
    Reference {
        /// The position.
        pointer: String,
        /// The reference, truncated to 128 characters.
        target: String,
        /// The reason.
        why: &'static str,
    },
    /// Schemas refer to each other in a cycle that never descends into the value.
    #[error(
        "the schema at `{pointer}` applies itself to the same value again, through `{keyword}`; a recursive schema refers to itself \
        from within `properties`, `items` or the like"
    )]
    Circle {
        /// The position where the cycle was found.
        pointer: String,
        /// The keyword that closes the cycle.
        keyword: String,
    },
    /// The linear-time engine cannot run a pattern.
    #[error(
        "`{keyword}` at `{pointer}` cannot be used: {why}; accepted are patterns without look-around and back-references, at most 4 KiB \
        long, that compile to at most 1 MiB"
    )]
    Pattern {
        /// `pattern` or `patternProperties`.
        keyword: &'static str,
        /// The position.
        pointer: String,
        /// The reason.
        why: &'static str,
    },
    /// A pattern takes more than is left of the allowance for several schemas.
    #[error(
        "with `{keyword}` at `{pointer}` there are too many patterns in several schemas together, or they compile to too much"
    )]
    PatternAllowance {
        /// `pattern` or `patternProperties`.
        keyword: &'static str,
        /// The position.
        pointer: String,
    },
    /// A name contains deceptive characters, or is too long.
    #[error("the name {name} at `{pointer}` is not accepted: {why}")]
    Name {
        /// The name, with its deceptive characters escaped.
        name: String,
        /// The position.
        pointer: String,
        /// The reason.
        why: &'static str,
    },
    /// A text contains deceptive characters.
    #[error(
        "the text at `{}` holds the hidden character U+{character:04X}; only visible characters are accepted, and in a pattern an escape",
        crate::text::elided(pointer, 128)
    )]
    Hidden {
        /// The position.
        pointer: String,
        /// The code point of the character.
        character: u32,
    },
    /// `"format": "workspace-path"` occurs where the host cannot determine which values it marks.
    #[error(
        "`\"format\": \"workspace-path\"` at `{pointer}` is reached through `{keyword}`; it counts under `properties`, `items` and local \
        `$ref` only"
    )]
    PathPlace {
        /// The position.
        pointer: String,
        /// The keyword that leads to it.
        keyword: String,
    },
    /// The schema exceeds a bound.
    #[error("the schema has {what} at `{pointer}`; at most {max} are accepted")]
    TooMuch {
        /// The exceeded quantity.
        what: &'static str,
        /// The bound.
        max: usize,
        /// The position where the bound was exceeded.
        pointer: String,
    },
    /// The value of a keyword violates the dialect's meta-schema.
    #[error("`{pointer}` is not valid in JSON Schema {dialect}: {keyword} has to be {accepted}")]
    Malformed {
        /// The position.
        pointer: String,
        /// The dialect.
        dialect: &'static str,
        /// The keyword, or else the last name in the pointer.
        keyword: String,
        /// The accepted form.
        accepted: &'static str,
    },
}
