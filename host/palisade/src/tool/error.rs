//! The reasons why a call fails: a closed set of classes, with details that a caller can match on.

mod advice;
mod class;
mod kind;

pub use advice::{Advice, Places};
pub use class::{ErrorClass, ExecutionKind, Limit, PermissionReason};
pub use kind::ErrorKind;

use super::text::cut;
use super::{CallId, Violation};
use serde_json::{Map, Value, json};
use std::error::Error as StdError;
use std::sync::Arc;

/// A failed call. `Display` writes the text for a model; [`message`](Self::message) adds the
/// advice.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}")]
pub struct ToolError {
    call_id: CallId,
    tool: String,
    kind: ErrorKind,
    advice: AdviceSource,
}

/// Where the advice of an error comes from.
#[derive(Debug, Clone)]
enum AdviceSource {
    /// From its kind: for the operator, whose settings are in these places.
    Kind(Arc<Places>),
    /// It was given for another reader, or there is none for that one.
    Given(Option<String>),
}

impl ToolError {
    /// Creates the error of a call.
    #[must_use]
    pub fn new(call_id: CallId, tool: &str, kind: ErrorKind) -> Self {
        let advice = AdviceSource::Kind(Arc::default());
        Self { call_id, tool: tool.to_owned(), kind, advice }
    }

    /// Sets the locations of the operator's settings.
    #[must_use]
    pub fn with_places(mut self, places: Arc<Places>) -> Self {
        self.advice = AdviceSource::Kind(places);
        self
    }

    /// Replaces the advice for the operator by that for another reader, such as a client that
    /// cannot change the settings. `None` leaves it out.
    #[must_use]
    pub fn with_advice(mut self, advice: Option<String>) -> Self {
        self.advice = AdviceSource::Given(advice);
        self
    }

    /// Returns the id of the failed call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// Returns the name of the called tool, or `<unnamed>` if the name was blank.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        named(&self.tool)
    }

    /// Returns the reason, to match on.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Returns the error's class.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        self.kind.class()
    }

    /// Returns the text for a model, followed by the advice for the operator.
    #[must_use]
    pub fn message(&self) -> String {
        match self.advice() {
            Some(advice) => format!("{}; {advice}", self.kind),
            None => self.kind.to_string(),
        }
    }

    /// Returns the text for a model, and for a user if [`is_user_visible`](Self::is_user_visible).
    #[must_use]
    pub fn reason(&self) -> String {
        self.kind.to_string()
    }

    /// Returns the operator's options, if there are any: functions of this library, or settings of
    /// the program if the host was told their [`Places`]. Or else the advice that
    /// [replaces](Self::with_advice) them.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match &self.advice {
            AdviceSource::Kind(places) => {
                let advice = self.kind.advice(self.tool_name())?;
                advice.is_for(places).then(|| advice.told(places))
            }
            AdviceSource::Given(advice) => advice.clone(),
        }
    }

    /// Returns the invalid fields of a validation error.
    #[must_use]
    pub fn errors(&self) -> &[Violation] {
        match &self.kind {
            ErrorKind::Validation(violations) => violations.as_slice(),
            _ => &[],
        }
    }

    /// Returns true if the message is fit for a user.
    #[must_use]
    pub fn is_user_visible(&self) -> bool {
        self.kind.is_user_visible()
    }

    /// Returns true if a retry may succeed.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        self.kind.is_recoverable()
    }

    /// Returns the cause with its chain, for the log. `Error::source` returns none, so that a text
    /// of the whole chain, which may reach a model, does not contain it.
    #[must_use]
    pub fn cause_for_log(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.kind {
            ErrorKind::Execution { source: Some(source), .. } => Some(&**source),
            _ => None,
        }
    }

    fn detail(&self) -> Map<String, Value> {
        let mut detail = self.kind.detail();
        if let ErrorKind::ResourceExhausted { limit, .. } = &self.kind {
            let all: Vec<String> =
                [limit.advice().to_owned()].into_iter().chain(self.advice()).collect();
            detail.insert("advice".to_owned(), Value::String(all.join("; ")));
        }
        detail
    }

    /// Returns `{"class", "message", "errors", "detail", "is_user_visible", "is_recoverable"}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let errors: Vec<Value> = self
            .errors()
            .iter()
            .map(|e| json!({"pointer": e.pointer, "reason": e.reason}))
            .collect();
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

/// Returns the name to display for a tool. A blank name is replaced and a long one cut.
pub(crate) fn named(tool: &str) -> &str {
    if tool.trim().is_empty() { "<unnamed>" } else { cut(tool, 256) }
}
