//! The error of a plugin that breaks its contract.

use crate::tool::{ErrorKind, ExecutionKind};

/// Returns the error of a breach, which this sentence describes.
pub(crate) fn breach(what: &str) -> ErrorKind {
    ErrorKind::execution(ExecutionKind::Contract, format!("the plugin broke its contract: {what}"))
}
