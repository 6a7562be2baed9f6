//! The reason why a call of a plugin has no output.

use crate::sandbox::run::ExitReason;
use crate::tool::{ErrorKind, SideEffects};
use std::time::Duration;

/// The reason why a call has no output.
pub(super) enum Failure {
    /// The guest ended without a result.
    Exit(ExitReason),
    /// The call was refused, or its output was.
    Error(ErrorKind),
}

impl Failure {
    /// Returns the error of a call with this time limit, of a tool of this class.
    pub(super) fn into_error_kind(self, time: Duration, class: SideEffects) -> ErrorKind {
        match self {
            Self::Exit(exit) => exit.into_error_kind(time, class),
            Self::Error(kind) => kind,
        }
    }
}

impl From<ExitReason> for Failure {
    fn from(exit: ExitReason) -> Self {
        Self::Exit(exit)
    }
}

impl From<ErrorKind> for Failure {
    fn from(kind: ErrorKind) -> Self {
        Self::Error(kind)
    }
}
