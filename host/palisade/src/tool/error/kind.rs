//! The reason why a call failed, with its class, its text and its details.

use super::advice::{Advice, still_compiling};
use super::class::{ErrorClass, ExecutionKind, Limit, PermissionReason};
use crate::tool::text::elided;
use crate::tool::{AskKind, SideEffects, Violations};
use serde_json::{Map, Value, json};
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

/// The reason why a call failed. `Display` writes the text for a model; [`advice`](Self::advice) is
/// for the operator.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no tool of this name; the nearest names are listed.
    #[error("there is no tool `{}`{}{}", elided(.tool, 64), suggestions(.nearest), still_compiling(.compiling))]
    NotFound {
        /// The requested name.
        tool: String,
        /// Up to three similar names.
        nearest: Vec<String>,
        /// The plugins that are still compiling, one of which may provide the tool.
        compiling: Vec<String>,
    },
    /// The input does not match the tool's schema or is not JSON.
    #[error("the input is not valid: {0}")]
    Validation(Violations),
    /// The policy, the sandbox or the workspace refused the call.
    #[error("{message}")]
    PermissionDenied {
        /// The source of the refusal.
        reason: PermissionReason,
        /// The refused operation, with the accepted form.
        message: String,
        /// The operator's options.
        advice: Option<Advice>,
        /// The protected tree, for [`PermissionReason::Protected`].
        tree: Option<Arc<str>>,
    },
    /// The user denied the call.
    #[error("the user denied this operation")]
    UserDenied,
    /// The question to the user ended without an answer, so the call must not run.
    #[error(
        "the question got no answer (its input ended, or it was closed), so the call was refused"
    )]
    NoAnswer,
    /// The deadline passed.
    #[error("the call was stopped after {}, the time that it had", humantime::format_duration(*.limit))]
    Timeout {
        /// The call's timeout.
        limit: Duration,
        /// The tool's class.
        class: SideEffects,
        /// The input field that set the timeout, if one did.
        input: Option<&'static str>,
    },
    /// The deadline passed and the thread of the call did not return.
    #[error("the call was given up after {}, the time that it had: it hangs in a file operation, or blocks its thread", humantime::format_duration(*.limit))]
    Unanswered {
        /// The call's timeout.
        limit: Duration,
    },
    /// The tool itself failed.
    #[error("{message}")]
    Execution {
        /// The kind of failure.
        kind: ExecutionKind,
        /// The tool's own message, or the host's if the tool gave none.
        message: String,
        /// The rejected input field, for [`ExecutionKind::InvalidInput`].
        field: Option<String>,
        /// The operator's options, if the host refused the tool something.
        advice: Option<Box<Advice>>,
        /// The error chain, for the log.
        source: Option<Arc<dyn StdError + Send + Sync>>,
    },
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The call ended to ask its client; it is repeated with the answer.
    #[error("the call ended so that its client can be asked; it is repeated with the answer")]
    AwaitsClient,
    /// The tool depends on requests to the client that this client does not support.
    #[error("the tool needs a client that can be asked for {}", listed(.kinds))]
    ClientLacks {
        /// The unsupported kinds of request.
        kinds: Vec<AskKind>,
    },
    /// The confirmation request was not answered in time.
    #[error("nobody answered within {} whether this call may run", humantime::format_duration(*.after))]
    ConfirmationTimeout {
        /// The time for which the request was open.
        after: Duration,
    },
    /// A limit was reached.
    #[error("the limit `{limit}` of {value} was reached; {}", limit.advice())]
    ResourceExhausted {
        /// The limit.
        limit: Limit,
        /// The limit's value, in the limit's unit.
        value: u64,
    },
}

impl ErrorKind {
    /// Creates an execution error with a plain message.
    #[must_use]
    pub fn execution(kind: ExecutionKind, message: impl Into<String>) -> Self {
        Self::Execution { kind, message: message.into(), field: None, advice: None, source: None }
    }

    /// Creates a refusal with a plain message.
    #[must_use]
    pub fn denied(reason: PermissionReason, message: impl Into<String>) -> Self {
        Self::PermissionDenied { reason, message: message.into(), advice: None, tree: None }
    }

    /// Creates a refusal with advice for the operator.
    #[must_use]
    pub fn denied_with(
        reason: PermissionReason,
        message: impl Into<String>,
        advice: Advice,
    ) -> Self {
        Self::PermissionDenied { reason, message: message.into(), advice: Some(advice), tree: None }
    }

    /// Adds advice for the operator, if an error of this kind can have some of its own.
    #[must_use]
    pub(crate) fn with_advice(mut self, given: Advice) -> Self {
        match &mut self {
            Self::PermissionDenied { advice, .. } => {
                advice.get_or_insert(given);
            }
            Self::Execution { advice, .. } => {
                advice.get_or_insert_with(|| Box::new(given));
            }
            _ => {}
        }
        self
    }

    /// Returns the operator's options for a call of this tool, if there are any.
    #[must_use]
    pub fn advice(&self, tool: &str) -> Option<Advice> {
        match self {
            Self::NotFound { nearest, .. } if nearest.is_empty() => Some(Advice::tools()),
            Self::PermissionDenied { advice, .. } => advice.clone(),
            Self::Execution { advice, .. } => advice.as_deref().cloned(),
            Self::Timeout { input: Some(field), .. } => Some(Advice::new(format!(
                "the input set that time: give a larger `{field}`, or leave it out"
            ))),
            Self::Timeout { class, input: None, .. } => {
                let key = format!("limits.tool_timeout.{tool}");
                let text = format!(
                    "a call of class {class} gets up to 600s with --timeout, or with `{key}`"
                );
                let in_code = format!(
                    "a call of class {class} gets up to 600s with `Call::with_timeout`, or with `HostBuilder::tool_timeout`"
                );
                Some(Advice::setting(text, key).in_code(in_code))
            }
            Self::Unanswered { .. } => {
                Some(Advice::new("see whether the file system of the workspace answers"))
            }
            Self::ResourceExhausted { limit, .. } => limit.operators_advice(),
            _ => None,
        }
    }

    /// Returns the error's class.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound { .. } => ErrorClass::NotFound,
            Self::Validation(_) => ErrorClass::ValidationError,
            Self::PermissionDenied { .. } => ErrorClass::PermissionDenied,
            Self::UserDenied | Self::NoAnswer => ErrorClass::UserDenied,
            Self::Timeout { .. } | Self::Unanswered { .. } => ErrorClass::Timeout,
            Self::Execution { .. } | Self::ClientLacks { .. } => ErrorClass::ExecutionError,
            Self::Cancelled | Self::AwaitsClient => ErrorClass::Cancelled,
            Self::ConfirmationTimeout { .. } => ErrorClass::ConfirmationTimeout,
            Self::ResourceExhausted { .. } => ErrorClass::ResourceExhausted,
        }
    }

    /// Returns true if a user may see the message. Internal errors and guest crashes go to the log.
    #[must_use]
    pub fn is_user_visible(&self) -> bool {
        !matches!(
            self,
            Self::Execution {
                kind: ExecutionKind::Internal | ExecutionKind::NoRuntime | ExecutionKind::Trap,
                ..
            }
        )
    }

    /// Returns true if another call, with other input or at another time, may succeed.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        match self {
            Self::NotFound { .. }
            | Self::Validation(_)
            | Self::Timeout { .. }
            | Self::Unanswered { .. }
            | Self::ConfirmationTimeout { .. }
            | Self::AwaitsClient
            | Self::ResourceExhausted { .. } => true,
            Self::Execution { kind, .. } => !matches!(
                kind,
                ExecutionKind::Trap
                    | ExecutionKind::Contract
                    | ExecutionKind::Internal
                    | ExecutionKind::NoRuntime
            ),
            Self::PermissionDenied { .. }
            | Self::UserDenied
            | Self::NoAnswer
            | Self::Cancelled
            | Self::ClientLacks { .. } => false,
        }
    }

    /// Returns true if the message comes from the tool's own output.
    pub(crate) fn is_in_the_tools_words(&self) -> bool {
        matches!(self, Self::Execution { kind: ExecutionKind::Unsuccessful, .. })
    }

    /// Creates the error of a tool that failed inside, whose chain only the log shows.
    #[must_use]
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::failed_inside("tool", source)
    }

    /// Creates the error of a call that failed in the host, whose chain only the log shows.
    pub(crate) fn failed_inside_host(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::failed_inside("host", source)
    }

    fn failed_inside(whom: &str, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Execution {
            kind: ExecutionKind::Internal,
            message: format!("the {whom} failed inside; the log has the details"),
            field: None,
            advice: None,
            source: Some(Arc::from(source.into())),
        }
    }

    /// Creates the error of a guest crash. The guest controls its message, so only the log shows
    /// it.
    pub(crate) fn crashed(source: impl StdError + Send + Sync + 'static) -> Self {
        Self::Execution {
            kind: ExecutionKind::Trap,
            message: "the plugin crashed".to_owned(),
            field: None,
            advice: None,
            source: Some(Arc::new(source)),
        }
    }

    /// Returns the details that a caller can match on.
    pub(super) fn detail(&self) -> Map<String, Value> {
        let detail = match self {
            Self::NotFound { nearest, compiling, .. } if compiling.is_empty() => {
                json!({"nearest": nearest})
            }
            Self::NotFound { nearest, compiling, .. } => {
                json!({"nearest": nearest, "compiling": compiling})
            }
            Self::PermissionDenied { reason, tree: Some(tree), .. } => {
                json!({"reason": reason.as_str(), "tree": &**tree})
            }
            Self::PermissionDenied { reason, .. } => json!({"reason": reason.as_str()}),
            Self::Timeout { limit, .. } => json!({"limit": "timeout", "value_ms": millis(*limit)}),
            Self::Unanswered { limit } => {
                json!({"limit": "timeout", "value_ms": millis(*limit), "reason": "no_answer"})
            }
            Self::Execution { kind, field, .. } => match field {
                Some(field) => json!({"kind": kind.as_str(), "field": field}),
                None => json!({"kind": kind.as_str()}),
            },
            Self::ConfirmationTimeout { after } => json!({"value_ms": millis(*after)}),
            Self::AwaitsClient => json!({"reason": "awaits_client"}),
            Self::ClientLacks { kinds } => json!({"reason": "client_lacks", "kinds": kinds}),
            Self::ResourceExhausted { limit, value } => {
                json!({"limit": limit.as_str(), "value": value})
            }
            Self::Validation(_) | Self::UserDenied | Self::NoAnswer | Self::Cancelled => {
                json!({})
            }
        };
        match detail {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

/// Converts an error that a native tool did not handle: the cause goes to the log only.
impl From<Box<dyn StdError + Send + Sync>> for ErrorKind {
    fn from(source: Box<dyn StdError + Send + Sync>) -> Self {
        Self::internal(source)
    }
}

/// Converts an I/O error that a native tool did not handle: the cause goes to the log only.
impl From<std::io::Error> for ErrorKind {
    fn from(source: std::io::Error) -> Self {
        Self::internal(source)
    }
}

fn suggestions(nearest: &[String]) -> String {
    let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

fn listed(kinds: &[AskKind]) -> String {
    kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" and ")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
