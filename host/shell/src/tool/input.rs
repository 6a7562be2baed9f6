//! The input of a call of `shell`.

use palisade::{ErrorKind, ExecutionKind};
use serde_json::{Value, json};
use std::time::Duration;

/// Maximum length of a command, in characters: in bytes it is below the 128 KiB that Linux accepts
/// as one argument.
const MAX_COMMAND: u64 = 32_000;
/// Maximum timeout that a call may ask for, in milliseconds: that of the class execute.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// The checked input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) command: String,
    /// The requested timeout, which can only lower that of the call.
    pub(super) timeout: Option<Duration>,
}

impl Input {
    /// Reads a value that conforms to the schema.
    pub(super) fn read(value: &Value) -> Result<Self, ErrorKind> {
        let command = value["command"].as_str().unwrap_or_default();
        if command.contains('\0') {
            return Err(ErrorKind::Execution {
                kind: ExecutionKind::InvalidInput,
                message: "the command holds a NUL character, which no command can; write it as an \
                          escape such as '\\0'"
                    .to_owned(),
                field: Some("command".to_owned()),
                advice: None,
                source: None,
            });
        }
        Ok(Self {
            command: command.to_owned(),
            timeout: value["timeout_ms"].as_u64().map(Duration::from_millis),
        })
    }
}

/// Returns the schema of the input.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_COMMAND,
                "description":
                    "The command, as it would be typed into a POSIX shell; several lines are fine.",
            },
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_TIMEOUT_MS,
                "description": "Stop the command after so many milliseconds. It cannot get more \
                                time than the call has.",
            },
        },
        "required": ["command"],
    })
}
