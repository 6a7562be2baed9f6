//! The keyword that says whether a call reads or changes the file at a path.

use serde_json::{Map, Value};

use super::error::SchemaError;
use super::pointer::join;

/// The keyword beside `"format": "workspace-path"`, with the values `"read"` and `"write"`.
pub const PATH_ACCESS: &str = "x-access";

/// The use that a tool makes of the file at a path. It is the plugin's claim and grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathAccess {
    /// The tool only reads the file.
    Read,
    /// The tool may change, create or remove the file. Also the value of a path without the
    /// keyword.
    Write,
}

impl PathAccess {
    /// Reads the keyword of a subschema that marks a path.
    pub(super) fn of(keywords: &Map<String, Value>, pointer: &str) -> Result<Self, SchemaError> {
        match keywords.get(PATH_ACCESS) {
            None => Ok(Self::Write),
            Some(Value::String(word)) if word == "read" => Ok(Self::Read),
            Some(Value::String(word)) if word == "write" => Ok(Self::Write),
            Some(_) => Err(SchemaError::Keyword {
                keyword: PATH_ACCESS,
                pointer: join(pointer, PATH_ACCESS),
                instead: "beside `\"format\": \"workspace-path\"` it is \"read\" for a path that the \
                          tool only reads, or \"write\"",
            }),
        }
    }
}
