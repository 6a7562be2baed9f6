//! Rules for paths that became secret after the host started.

use crate::tool::{ErrorKind, ExecutionKind};
use crate::workspace::Workspace;
use std::io;
use std::sync::Arc;

/// The source of rules that are added while the host runs.
pub(crate) trait LateRules: Send + Sync {
    /// Returns true if there are no rules to add. It must be cheap, because it runs before each
    /// call.
    fn are_current_in(&self, workspace: &Arc<Workspace>) -> bool;

    /// Adds the outstanding rules. It accesses files and may take long.
    ///
    /// # Errors
    ///
    /// An error if a path that a tool could reach cannot be protected.
    fn apply_to(&self, workspace: &Arc<Workspace>) -> io::Result<()>;
}

/// Returns the error of a call whose outstanding rules cannot be added.
pub(super) fn not_hidden(error: &io::Error) -> ErrorKind {
    ErrorKind::execution(
        ExecutionKind::Internal,
        format!(
            "a cache, a configuration file or a plugin directory of another run cannot be protected from the tool: {error}"
        ),
    )
}
