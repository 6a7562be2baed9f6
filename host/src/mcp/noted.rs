//! What was asked and how it ended, a line of the log for each request: its method, its tool, the outcome and the time. Never what a tool was given or gave back.

use super::outcome::ERROR;
use rmcp::model::{CallToolResponse, ErrorData};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Display;
use std::time::Instant;
use tracing::Span;

/// What these lines are logged as, at the level *debug*: [`super::REQUESTS`] turns on them alone.
pub(super) const TARGET: &str = crate::http::REQUESTS;

/// A request under way. However it ends, a line tells of it; nothing is noted where nobody reads it.
pub(super) struct Noted(Option<Note>);

struct Note {
    what: String,
    outcome: Cow<'static, str>,
    begun: Instant,
    span: Span,
}

impl Noted {
    /// Begins with a request of this method.
    pub(super) fn begin(method: impl Display) -> Self {
        // Until it ends otherwise, its future has been dropped.
        let note =
            || Note { what: method.to_string(), outcome: "left".into(), begun: Instant::now(), span: Span::none() };
        Self(tracing::enabled!(target: TARGET, tracing::Level::DEBUG).then(note))
    }

    /// With a line that shows which span it belongs to.
    pub(super) fn within(mut self, span: &Span) -> Self {
        if let Some(note) = &mut self.0 {
            note.span = span.clone();
        }
        self
    }

    /// The same answer, and a line about it.
    pub(super) fn answered<T>(mut self, answer: Result<T, ErrorData>) -> Result<T, ErrorData> {
        self.ended(|| answer.as_ref().map_or_else(refused, |_| "ok".into()));
        answer
    }

    /// How a call of a tool ended.
    pub(super) fn called(mut self, answer: &Result<CallToolResponse, ErrorData>) {
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
            span.in_scope(|| tracing::debug!(target: TARGET, "{what}: {outcome}, {:.1?}", begun.elapsed()));
        }
    }
}

fn refused(error: &ErrorData) -> Cow<'static, str> {
    format!("error {}", error.code.0).into()
}

/// A failure by its class.
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
