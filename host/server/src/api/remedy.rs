//! The remedy of a failed call for who reads its result over HTTP: a program that cannot change the
//! settings of the server, and has no command line of it.

use palisade::policy::Mode;
use palisade::{ErrorKind, Host, PermissionReason, ToolResult};

/// The remedy of a failure that only the operator can remove.
const ASK: &str = "ask the operator of this server";
/// The place where a call waits for a permission.
const CONSOLE: &str = "ask the operator of this server: while the console is open, such a call \
                       waits there for an answer";

/// The request that a call came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CameBy {
    /// A call, whose time limit the request can set.
    Call,
    /// A model's reply.
    Reply,
}

/// Returns a result with a remedy for its reader in place of the advice for the operator.
pub(super) fn told(host: &Host, result: ToolResult, by: CameBy) -> ToolResult {
    let remedy = remedy(host, &result, by);
    result.with_advice(remedy)
}

fn remedy(host: &Host, result: &ToolResult, by: CameBy) -> Option<String> {
    let error = result.error()?;
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied { reason, advice, .. } => {
            of_refusal(host, result.tool(), *reason).or(advice.is_some().then_some(ASK))?
        }
        ErrorKind::ConfirmationTimeout { .. } => {
            "make the call again when the operator of this server can answer in the console"
        }
        ErrorKind::NotFound { nearest, .. } if nearest.is_empty() => {
            "GET /sessions/ID/definitions has the tools of the session"
        }
        // The tool's own member sets it.
        ErrorKind::Timeout { input: Some(_), .. } => return error.advice(),
        ErrorKind::Timeout { input: None, .. } if by == CameBy::Call => {
            "the request sets another time limit with `timeout_ms`, of up to 600000"
        }
        ErrorKind::Unanswered { .. } | ErrorKind::Execution { advice: Some(_), .. } => ASK,
        _ => return None,
    };
    Some(remedy.to_owned())
}

/// Returns the remedy of a refusal that the caller can do something about. The rules of a session
/// are its creator's, who is a caller as well.
fn of_refusal(host: &Host, tool: &str, reason: PermissionReason) -> Option<&'static str> {
    let tool = host.registry().get(tool).ok()?;
    let (own, definition) = (host.session(), tool.definition());
    let mode = || own.policy().decide(definition, tool.origin());
    match reason {
        PermissionReason::NotAllowed if own.permits(&tool) => {
            Some("open a session whose `tools` name it, or without that list")
        }
        PermissionReason::Policy if mode() != Mode::Deny => {
            Some("the `policy` of this session denies it; open a session with another one")
        }
        PermissionReason::NoConfirmer if mode() == Mode::Auto => {
            Some("the `policy` of this session asks about it; open a session with another one")
        }
        PermissionReason::NoConfirmer => Some(CONSOLE),
        _ => None,
    }
}
