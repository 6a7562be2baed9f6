//! Errors of a call that its tool has no part in.

use crate::registry::Registered;
use crate::sandbox::limits;
use crate::tool::{Advice, ErrorKind, ExecutionKind, Limit, PermissionReason};

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

/// Returns the error of a call of a tool that its session may not call.
pub(super) fn not_allowed(tool: &Registered) -> ErrorKind {
    let name = tool.definition().name();
    let message =
        format!("`{name}` is not among the tools that may be called here; call a listed tool");
    let advice = format!("`tools.only` leaves `{name}` out; add it there,");
    ErrorKind::denied_with(
        PermissionReason::NotAllowed,
        message,
        Advice::setting(advice, "tools.only"),
    )
}
