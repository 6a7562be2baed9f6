//! The error of a tool that breaks its contract.

use crate::tool::{ErrorKind, ExecutionKind};

/// Who has promised what a contract says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promiser {
    Plugin,
    /// A native tool.
    Tool,
}

impl Promiser {
    /// Returns the error of a breach, which this sentence describes.
    pub(crate) fn breach(self, what: &str) -> ErrorKind {
        let who = match self {
            Self::Plugin => "plugin",
            Self::Tool => "tool",
        };
        ErrorKind::execution(
            ExecutionKind::Contract,
            format!("the {who} broke its contract: {what}"),
        )
    }
}

/// Returns the error of a plugin's breach, which this sentence describes.
pub(crate) fn breach(what: &str) -> ErrorKind {
    Promiser::Plugin.breach(what)
}
