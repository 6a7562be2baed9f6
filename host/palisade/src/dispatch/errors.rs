//! Errors of a call that its tool has no part in.

use crate::plugins::Unapproved;
use crate::registry::Registered;
use crate::sandbox::limits;
use crate::session::ListOf;
use crate::tool::error::named;
use crate::tool::{Advice, ErrorKind, ExecutionKind, Limit, PermissionReason};

/// Returns the error of a call that timed out in the queue.
pub(super) fn queue_timeout() -> ErrorKind {
    ErrorKind::ResourceExhausted { limit: Limit::Queue, value: limits::QUEUE_MILLIS }
}

/// Returns the error of a call outside a tokio runtime, or in one without timers.
pub(super) fn no_runtime() -> ErrorKind {
    ErrorKind::execution(
        ExecutionKind::NoRuntime,
        "a call needs a tokio runtime with its timers enabled",
    )
}

/// Returns the error of a call of a tool that this list leaves out.
pub(super) fn not_allowed(tool: &Registered, list: ListOf) -> ErrorKind {
    let name = tool.definition().name();
    let (message, advice) = match list {
        ListOf::Host => (
            format!("`{name}` is not among the tools that may be called here; call a listed tool"),
            Advice::setting(
                format!("`tools.only` leaves `{name}` out; add it there,"),
                "tools.only",
            )
            .in_code(format!("`HostBuilder::allow` leaves `{name}` out; add it there")),
        ),
        ListOf::Session => (
            format!("`{name}` is not among the tools of this session; call a listed tool"),
            Advice::new(format!(
                "the list of tools that this session was opened with leaves `{name}` out; open \
                 another session"
            ))
            .in_code(format!("`SessionBuilder::allow` leaves `{name}` out; add it there")),
        ),
    };
    ErrorKind::denied_with(PermissionReason::NotAllowed, message, advice)
}

/// Returns the error of a call of a tool whose plugin is not approved.
pub(super) fn not_approved(tool: &str, unapproved: &Unapproved) -> ErrorKind {
    let Unapproved { plugin, why } = unapproved;
    let message =
        format!("`{}` is a tool of a plugin that is not approved; call a listed tool", named(tool));
    let advice = format!("the plugin `{plugin}`: {}; {}", why.reason(), why.advice());
    ErrorKind::denied_with(PermissionReason::NotApproved, message, Advice::new(advice))
}

/// Returns the error of a call of a native tool that path rules do not bind.
pub(super) fn not_bound(tool: &Registered) -> ErrorKind {
    let name = tool.definition().name();
    let message = format!(
        "`{name}` is refused: there are path rules, and they cannot bind the program that this tool \
         runs; \
         a tool that reads or writes files itself is accepted"
    );
    let advice = Advice::setting("set `paths.commands` to \"allow\"", "paths.commands")
        .in_code("build the host with `Commands::Allow`");
    ErrorKind::denied_with(PermissionReason::PathRules, message, advice)
}

/// Returns the error of a call whose question could not be asked, because the confirmer panicked.
pub(super) fn confirmer_failed(panic: &str) -> ErrorKind {
    // The text of a panic is written for developers and may contain anything.
    tracing::error!("the confirmer panicked: {panic}");
    ErrorKind::denied(
        PermissionReason::ConfirmerFailed,
        "the call needs a confirmation, and the confirmer of this program failed while it asked; \
         the log has the details",
    )
}
