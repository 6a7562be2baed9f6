//! The error of a tool that breaks its contract.

use crate::tool::{ErrorKind, ExecutionKind};

/// Whose contract is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promiser {
    Plugin,
    /// A native tool.
    Tool,
}

impl Promiser {
    /// Returns the error of a breach that this sentence describes.
    pub(crate) fn breach(self, sentence: &str) -> ErrorKind {
        let who = match self {
            Self::Plugin => "plugin",
            Self::Tool => "tool",
        };
        ErrorKind::execution(
            ExecutionKind::Contract,
            format!("the {who} broke its contract: {sentence}"),
        )
    }
}
