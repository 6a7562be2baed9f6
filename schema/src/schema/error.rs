//! Why a schema was refused.

use crate::json::JsonError;

/// Why a schema was refused. Each variant says what stands where, and what would be accepted; places are JSON pointers into the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text cannot be read within its bounds.
    #[error("the schema cannot be read: {0}")]
    Text(#[from] JsonError),
    /// The root of an input schema is not an object schema.
    #[error("an input schema describes an object: want `\"type\": \"object\"` at its root, got {got}")]
    RootNotObject {
        /// What stands there.
        got: String,
    },
    /// A schema is neither an object nor a boolean.
    #[error("`{pointer}` is {got}; a schema is an object, or true or false")]
    NotASchema {
        /// Where it stands.
        pointer: String,
        /// The type that was found.
        got: &'static str,
    },
    /// `$schema` names a dialect that is not known.
    #[error(
        "`$schema` at `{pointer}` is not accepted; leave it out, or set it at the root to \
        \"https://json-schema.org/draft/2020-12/schema\" or \"http://json-schema.org/draft-07/schema#\""
    )]
    Dialect {
        /// Where it stands.
        pointer: String,
    },
    /// A keyword that would make the meaning of a schema depend on something outside it.
    #[error("`{keyword}` at `{pointer}` is not accepted; {instead}")]
    Keyword {
        /// The keyword.
        keyword: &'static str,
        /// Where it stands.
        pointer: String,
        /// What to write in its place.
        instead: &'static str,
    },
    /// A `$ref` that does not lead to a schema of the same document.
    #[error(
        "`$ref` at `{pointer}` leads nowhere: {target:?} {why}; accepted are \"#\", \"#/$defs/NAME\" and \"#ANCHOR\" of this schema"
    )]
    Reference {
        /// Where it stands.
        pointer: String,
        /// What it says, cut at 128 characters.
        target: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Schemas refer to each other in a circle that never goes on to a part of the value.
    #[error(
        "the schema at `{pointer}` applies itself to the same value again, through `{keyword}`; a recursive schema refers to itself \
        from within `properties`, `items` or the like"
    )]
    Circle {
        /// Where the circle was found.
        pointer: String,
        /// The keyword that closes it.
        keyword: String,
    },
    /// A pattern that the linear-time engine cannot run.
    #[error(
        "`{keyword}` at `{pointer}` cannot be used: {why}; accepted are patterns without look-around and back-references, at most 4 KiB \
        long, that compile to at most 1 MiB"
    )]
    Pattern {
        /// `pattern` or `patternProperties`.
        keyword: &'static str,
        /// Where it stands.
        pointer: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A name that hides something from a reader, or is too long.
    #[error("the name {name} at `{pointer}` is not accepted: {why}")]
    Name {
        /// The name, with what hides in it escaped.
        name: String,
        /// Where it stands.
        pointer: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A text that hides something from a reader.
    #[error(
        "the text at `{}` holds the hidden character U+{character:04X}; only visible characters are accepted, and in a pattern an escape",
        crate::text::elided(pointer, 128)
    )]
    Hidden {
        /// Where it stands.
        pointer: String,
        /// The character's number.
        character: u32,
    },
    /// `"format": "workspace-path"` where the host cannot say for sure which values it marks.
    #[error(
        "`\"format\": \"workspace-path\"` at `{pointer}` is reached through `{keyword}`; it counts under `properties`, `items` and local \
        `$ref` only"
    )]
    PathPlace {
        /// Where it stands.
        pointer: String,
        /// The keyword on the way to it.
        keyword: String,
    },
    /// The schema goes beyond a bound.
    #[error("the schema has {what} at `{pointer}`; at most {max} are accepted")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        max: usize,
        /// Where the bound was crossed.
        pointer: String,
    },
    /// A keyword's value is not what the dialect's meta-schema asks for.
    #[error("`{pointer}` is not valid in JSON Schema {dialect}: {keyword} has to be {accepted}")]
    Malformed {
        /// Where it stands.
        pointer: String,
        /// The dialect.
        dialect: &'static str,
        /// The keyword, or the name of whatever the pointer ends with.
        keyword: String,
        /// What would be accepted.
        accepted: &'static str,
    },
}
