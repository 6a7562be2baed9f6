//! The reason why a function cannot be a tool.

use crate::tool::{DefinitionError, InvalidName};

/// The maximum number of parts of a function's types, with each occurrence of a type counted: the
/// number of subschemas that a schema may have.
pub(super) const MAX_PARTS: usize = 2_000;
/// The maximum nesting of a function's types. Their schema is nested up to twice as deep.
pub(super) const MAX_DEPTH: usize = 24;

/// The reason why a function cannot be a tool.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("it takes or returns a resource, and no resource outlives the sandbox of its call")]
    Resource,
    #[error("it belongs to a resource, and no resource outlives the sandbox of its call")]
    Method,
    #[error(
        "it is asynchronous, or takes or returns a stream or a future; only synchronous functions of plain values can be tools"
    )]
    Asynchronous,
    #[error("it takes or returns a {0}, which has no form in JSON; other types are accepted")]
    Type(&'static str),
    #[error(
        "its types are too large; up to {MAX_PARTS} parts, nested {MAX_DEPTH} deep, are accepted"
    )]
    Size,
    #[error("{0}; a tool is named after its interface and its function")]
    Name(#[from] InvalidName),
    #[error("the function {0} has the same tool name; the first one keeps it")]
    NameTaken(String),
    #[error("a toolchain made it for itself")]
    Toolchain,
    #[error("{0}")]
    Definition(#[from] DefinitionError),
}
