//! The request log: a line per request of the main methods, with its method, tool, outcome and
//! duration. It never contains a tool's input or output.

use crate::protocol::tool_result::ERROR;
use rmcp::model::{CallToolResponse, ErrorData};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Display;
use std::time::Instant;
use tracing::Span;

/// The log target of these lines, at level *debug*. [`crate::REQUESTS`] enables them alone.
pub(crate) const TARGET: &str = crate::http::REQUESTS;

/// The log line of an in-flight request, written on drop. Nothing is recorded while the log target
/// is disabled.
pub(crate) struct Noted(Option<Note>);

struct Note {
    what: String,
    outcome: Cow<'static, str>,
    begun: Instant,
    span: Span,
}

impl Noted {
    /// Starts the line of a request with this method.
    pub(crate) fn begin(method: impl Display) -> Self {
        // The outcome if the future is dropped.
        let note = || Note {
            what: method.to_string(),
            outcome: "left".into(),
            begun: Instant::now(),
            span: Span::none(),
        };
        Self(tracing::enabled!(target: TARGET, tracing::Level::DEBUG).then(note))
    }

    /// Attaches the line to a span.
    pub(crate) fn within(mut self, span: &Span) -> Self {
        if let Some(note) = &mut self.0 {
            note.span = span.clone();
        }
        self
    }

    /// Records the outcome of a request, and returns its response.
    pub(crate) fn answered<T>(mut self, answer: Result<T, ErrorData>) -> Result<T, ErrorData> {
        self.ended(|| answer.as_ref().map_or_else(refused, |_| "ok".into()));
        answer
    }

    /// Records the outcome of a tool call.
    pub(crate) fn called(mut self, answer: &Result<CallToolResponse, ErrorData>) {
        self.ended(|| answer.as_ref().map_or_else(refused, outcome));
    }

    fn ended(&mut self, outcome: impl FnOnce() -> Cow<'static, str>) {
        if let Some(note) = &mut self.0 {
            note.outcome = outcome();
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(Note { what, outcome, begun, span }) = &self.0 {
            span.in_scope(
                || tracing::debug!(target: TARGET, "{what}: {outcome}, {:.1?}", begun.elapsed()),
            );
        }
    }
}

fn refused(error: &ErrorData) -> Cow<'static, str> {
    format!("error {}", error.code.0).into()
}

/// Returns the outcome of a call: the error class of a failure.
fn outcome(response: &CallToolResponse) -> Cow<'static, str> {
    let result = match response {
        CallToolResponse::Complete(result) => result,
        CallToolResponse::InputRequired(_) => return "asks".into(),
        _ => return "ok".into(),
    };
    let class = || result.meta.as_ref()?.get(ERROR)?.get("class").and_then(Value::as_str);
    match result.is_error {
        Some(true) => class().unwrap_or("tool_error").to_owned().into(),
        _ => "ok".into(),
    }
}
