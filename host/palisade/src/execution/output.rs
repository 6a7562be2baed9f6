//! The output of a tool that ran to completion.

use crate::tool::{Content, ErrorKind, ExecutionKind};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The output of a tool that ran to completion.
#[derive(Debug, Clone, Default)]
pub struct ToolOutput {
    /// The blocks for the model, in order.
    pub content: Vec<Content>,
    /// The outcome.
    pub outcome: Outcome,
    /// Metadata for the embedder, never for the model.
    pub metadata: Map<String, Value>,
    /// The changed files, relative to the workspace, under their real names.
    pub files_modified: Vec<PathBuf>,
    /// The executed command, if there is one.
    pub command_executed: Option<String>,
}

impl ToolOutput {
    /// Creates a success with one text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], ..Self::default() }
    }
}

/// The outcome of a tool that ran to completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The tool did what it was asked to do.
    #[default]
    Success,
    /// The tool reports a failure that the model should see as one.
    Failure,
}

/// Converts a message of the tool to a plain failure.
impl From<String> for ErrorKind {
    fn from(message: String) -> Self {
        Self::execution(ExecutionKind::Failed, message)
    }
}
