//! The kinds of requests to a plugin with resources or prompts.

use crate::tool::schema::Schema;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// The key in the metadata of an output under which the roles of a prompt's messages are listed.
pub const ROLES: &str = "roles";

/// A kind of request to a plugin with resources or prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// Reads a resource: `{"uri"}`. Its contents are the blocks of the output.
    Read,
    /// Gets a prompt: `{"name", "arguments"}`. Its messages are the blocks of the output, and their
    /// roles are in the metadata.
    Get,
    /// Completes an argument: `{"prompt", "argument", "so_far"}`. The output is one JSON block with
    /// a list of texts.
    Complete,
}

impl Offered {
    /// Returns the schema of the input, which is built once for all plugins.
    pub(super) fn schema(self) -> Option<Schema> {
        static SCHEMAS: [OnceLock<Option<Schema>>; 3] = [const { OnceLock::new() }; 3];
        SCHEMAS.get(self as usize)?.get_or_init(|| Schema::input(self.input_schema()).ok()).clone()
    }

    fn input_schema(self) -> Value {
        let (properties, required) = match self {
            Self::Read => (json!({"uri": {"type": "string"}}), json!(["uri"])),
            Self::Get => {
                let arguments =
                    json!({"type": "object", "additionalProperties": {"type": "string"}});
                (
                    json!({"name": {"type": "string"}, "arguments": arguments}),
                    json!(["name", "arguments"]),
                )
            }
            Self::Complete => {
                let text = json!({"type": "string"});
                (
                    json!({"prompt": text, "argument": text, "so_far": text}),
                    json!(["prompt", "argument", "so_far"]),
                )
            }
        };
        json!({"type": "object", "properties": properties, "required": required})
    }

    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Read => "resources",
            Self::Get => "prompts",
            Self::Complete => "completions",
        }
    }
}
