//! Errors of a call that its tool has no part in.

use crate::sandbox::limits;
use crate::tool::{ErrorKind, ExecutionKind, Limit};

/// Returns the error of a call that timed out in the queue.
pub(super) fn queue_timeout() -> ErrorKind {
    ErrorKind::ResourceExhausted { limit: Limit::Queue, value: limits::QUEUE_MILLIS }
}

/// Returns the error of a call outside a tokio runtime.
pub(super) fn no_runtime() -> ErrorKind {
    ErrorKind::execution(
        ExecutionKind::Internal,
        "a call needs a tokio runtime with its timers enabled",
    )
}
