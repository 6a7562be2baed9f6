//! Why a call failed: a closed set of classes, and under each what the caller can match on.

mod advice;
mod class;

use advice::still_compiling;
pub use advice::{Advice, Places};
pub use class::{ErrorClass, ExecutionKind, Limit, PermissionReason};

use super::text::{cut, elided};
use super::{AskKind, CallId, SideEffects, Violation, Violations};
use serde_json::{Map, Value, json};
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

/// What went wrong. Shown, it says what a model is meant to read: what was refused and why, and what it could do itself. What an operator can do is apart, in
/// [`advice`](Self::advice).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No tool of this name; the nearest names are listed.
    #[error("there is no tool `{}`{}{}", elided(.tool, 64), suggestions(.nearest), still_compiling(.compiling))]
    NotFound {
        /// The name asked for.
        tool: String,
        /// Up to three names that are near it.
        nearest: Vec<String>,
        /// The plugins that are being compiled: the tool may be one of theirs.
        compiling: Vec<String>,
    },
    /// The input breaks the tool's schema, or is not JSON.
    #[error("the input is not valid: {0}")]
    Validation(Violations),
    /// Something said no.
    #[error("{message}")]
    PermissionDenied {
        /// Who or what.
        reason: PermissionReason,
        /// What was refused, and what would be accepted.
        message: String,
        /// What an operator can do about it.
        advice: Option<Advice>,
        /// The protected tree that was met, for [`PermissionReason::Protected`].
        tree: Option<Arc<str>>,
    },
    /// A person said no.
    #[error("the user denied this operation")]
    UserDenied,
    /// The time was up.
    #[error("the call was stopped after {}, the time that it had", humantime::format_duration(*.limit))]
    Timeout {
        /// The time the call had.
        limit: Duration,
        /// The tool's class.
        class: SideEffects,
        /// The field of the input that set the time, where the input did.
        input: Option<&'static str>,
    },
    /// The time was up, and the call could not even be stopped: its thread had not come back.
    #[error("the call was given up after {}, the time that it had: it hangs in a file operation, or blocks its thread", humantime::format_duration(*.limit))]
    Unanswered {
        /// The time the call had.
        limit: Duration,
    },
    /// The tool itself failed.
    #[error("{message}")]
    Execution {
        /// How.
        kind: ExecutionKind,
        /// The tool's own words, or the host's where the tool had none.
        message: String,
        /// The field that the tool complains of, for [`ExecutionKind::InvalidInput`].
        field: Option<String>,
        /// The chain below, for the log.
        source: Option<Arc<dyn StdError + Send + Sync>>,
    },
    /// The caller stopped the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The call ends here, for its client to be asked, and is made again with the answer.
    #[error("the call ends here, for its client to be asked; it is made again with the answer")]
    AwaitsClient,
    /// The tool can do nothing unless its client is asked for these, and this one cannot be.
    #[error("the tool needs a client that can be asked for {}", listed(.kinds))]
    ClientLacks {
        /// What is missing.
        kinds: Vec<AskKind>,
    },
    /// Nobody answered.
    #[error("nobody answered within {} whether this call may run", humantime::format_duration(*.after))]
    ConfirmationTimeout {
        /// How long the question stood.
        after: Duration,
    },
    /// A limit was reached.
    #[error("the limit `{limit}` of {value} was reached; {}", limit.advice())]
    ResourceExhausted {
        /// Which.
        limit: Limit,
        /// Its value, in the limit's unit.
        value: u64,
    },
}

impl ErrorKind {
    /// An execution error in plain words.
    #[must_use]
    pub fn execution(kind: ExecutionKind, message: impl Into<String>) -> Self {
        Self::Execution { kind, message: message.into(), field: None, source: None }
    }

    /// A refusal in plain words.
    #[must_use]
    pub fn denied(reason: PermissionReason, message: impl Into<String>) -> Self {
        Self::PermissionDenied { reason, message: message.into(), advice: None, tree: None }
    }

    /// A refusal with what an operator can do about it.
    #[must_use]
    pub fn denied_with(reason: PermissionReason, message: impl Into<String>, advice: Advice) -> Self {
        Self::PermissionDenied { reason, message: message.into(), advice: Some(advice), tree: None }
    }

    /// What an operator can do about it, where there is something, for a call of this tool.
    #[must_use]
    pub fn advice(&self, tool: &str) -> Option<Advice> {
        match self {
            Self::NotFound { nearest, .. } if nearest.is_empty() => {
                Some(Advice::new("`palisade list` shows the tools there are"))
            }
            Self::PermissionDenied { advice, .. } => advice.clone(),
            Self::Timeout { input: Some(field), .. } => {
                Some(Advice::new(format!("the input set that time: give a larger `{field}`, or leave it out")))
            }
            Self::Timeout { class, input: None, .. } => {
                let key = format!("limits.tool_timeout.{tool}");
                let text = format!("a call of class {class} gets up to 600s with --timeout, or with `{key}`");
                Some(Advice::setting(text, key))
            }
            Self::Unanswered { .. } => Some(Advice::new("see whether the file system of the workspace answers")),
            Self::ResourceExhausted { limit, .. } => limit.operators_advice(),
            _ => None,
        }
    }

    /// The class that the error falls into.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound { .. } => ErrorClass::NotFound,
            Self::Validation(_) => ErrorClass::ValidationError,
            Self::PermissionDenied { .. } => ErrorClass::PermissionDenied,
            Self::UserDenied => ErrorClass::UserDenied,
            Self::Timeout { .. } | Self::Unanswered { .. } => ErrorClass::Timeout,
            Self::Execution { .. } | Self::ClientLacks { .. } => ErrorClass::ExecutionError,
            Self::Cancelled | Self::AwaitsClient => ErrorClass::Cancelled,
            Self::ConfirmationTimeout { .. } => ErrorClass::ConfirmationTimeout,
            Self::ResourceExhausted { .. } => ErrorClass::ResourceExhausted,
        }
    }

    /// Whether the message is meant for a person. Internal failures and crashes of a guest are not: their chain goes to the log.
    #[must_use]
    pub fn is_user_visible(&self) -> bool {
        !matches!(self, Self::Execution { kind: ExecutionKind::Internal | ExecutionKind::Trap, .. })
    }

    /// Whether another call, with other input or at another time, may well succeed.
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
            Self::Execution { kind, .. } => {
                !matches!(kind, ExecutionKind::Trap | ExecutionKind::Contract | ExecutionKind::Internal)
            }
            Self::PermissionDenied { .. } | Self::UserDenied | Self::Cancelled | Self::ClientLacks { .. } => false,
        }
    }

    /// Whether the message is made of the tool's own output.
    pub(crate) fn is_in_the_tools_words(&self) -> bool {
        matches!(self, Self::Execution { kind: ExecutionKind::Unsuccessful, .. })
    }

    /// An error that no person or model is meant to see: it says so, and the chain goes to the log.
    #[must_use]
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Execution {
            kind: ExecutionKind::Internal,
            message: "the tool failed inside; the log has the details".to_owned(),
            field: None,
            source: Some(Arc::from(source.into())),
        }
    }

    /// A crash of a guest: its own account goes to the log, since a guest can write anything into it.
    pub(crate) fn crashed(source: impl StdError + Send + Sync + 'static) -> Self {
        Self::Execution {
            kind: ExecutionKind::Trap,
            message: "the plugin crashed".to_owned(),
            field: None,
            source: Some(Arc::new(source)),
        }
    }

    fn detail(&self) -> Map<String, Value> {
        let detail = match self {
            Self::NotFound { nearest, compiling, .. } if compiling.is_empty() => json!({"nearest": nearest}),
            Self::NotFound { nearest, compiling, .. } => json!({"nearest": nearest, "compiling": compiling}),
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
            Self::Validation(_) | Self::UserDenied | Self::Cancelled => json!({}),
        };
        match detail {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

/// Whatever a native tool did not handle: the caller learns that it failed, the log learns why.
impl From<Box<dyn StdError + Send + Sync>> for ErrorKind {
    fn from(source: Box<dyn StdError + Send + Sync>) -> Self {
        Self::internal(source)
    }
}

/// As every error that a native tool did not handle.
impl From<std::io::Error> for ErrorKind {
    fn from(source: std::io::Error) -> Self {
        Self::internal(source)
    }
}

/// A failed call: what went wrong, and in which call of which tool. Shown, it is what a model is meant to read; [`message`](Self::message) says more.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}")]
pub struct ToolError {
    call_id: CallId,
    tool: String,
    kind: ErrorKind,
    places: Arc<Places>,
}

impl ToolError {
    /// Ties an error to its call.
    #[must_use]
    pub fn new(call_id: CallId, tool: &str, kind: ErrorKind) -> Self {
        Self { call_id, tool: tool.to_owned(), kind, places: Arc::default() }
    }

    /// Says where the operator's settings stand.
    #[must_use]
    pub fn with_places(mut self, places: Arc<Places>) -> Self {
        self.places = places;
        self
    }

    /// The call that failed.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The tool that was called; `<unnamed>` where the name was blank.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        named(&self.tool)
    }

    /// What went wrong, to match on.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The class.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        self.kind.class()
    }

    /// All of the message, for the operator: what a model reads, and what an operator can do about it, with the flags and settings by name.
    #[must_use]
    pub fn message(&self) -> String {
        match self.advice() {
            Some(advice) => format!("{}; {advice}", self.kind),
            None => self.kind.to_string(),
        }
    }

    /// What a model is meant to read and, if [`is_user_visible`](Self::is_user_visible), a person: what was refused and why.
    #[must_use]
    pub fn reason(&self) -> String {
        self.kind.to_string()
    }

    /// What an operator can do about it, where there is something.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        self.kind.advice(self.tool_name()).map(|advice| advice.told(&self.places))
    }

    /// The fields that are wrong, for a validation error.
    #[must_use]
    pub fn errors(&self) -> &[Violation] {
        match &self.kind {
            ErrorKind::Validation(violations) => violations.as_slice(),
            _ => &[],
        }
    }

    /// Whether the message is meant for a person.
    #[must_use]
    pub fn is_user_visible(&self) -> bool {
        self.kind.is_user_visible()
    }

    /// Whether another try may succeed.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        self.kind.is_recoverable()
    }

    /// The chain below the message, for the log.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.kind {
            ErrorKind::Execution { source: Some(source), .. } => Some(&**source),
            _ => None,
        }
    }

    fn detail(&self) -> Map<String, Value> {
        let mut detail = self.kind.detail();
        if let ErrorKind::ResourceExhausted { limit, .. } = &self.kind {
            let all: Vec<String> = [limit.advice().to_owned()].into_iter().chain(self.advice()).collect();
            detail.insert("advice".to_owned(), Value::String(all.join("; ")));
        }
        detail
    }

    /// `{"class", "message", "errors", "detail", "is_user_visible", "is_recoverable"}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let errors: Vec<Value> =
            self.errors().iter().map(|e| json!({"pointer": e.pointer, "reason": e.reason})).collect();
        json!({
            "class": self.class().as_str(),
            "message": self.message(),
            "errors": errors,
            "detail": self.detail(),
            "is_user_visible": self.is_user_visible(),
            "is_recoverable": self.is_recoverable(),
        })
    }
}

/// The name to show for a tool that is not known: a blank one would make a message unreadable, and of a long one the beginning does.
pub(crate) fn named(tool: &str) -> &str {
    if tool.trim().is_empty() { "<unnamed>" } else { cut(tool, 256) }
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
