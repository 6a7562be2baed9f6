//! The request log: a line per request of the main methods, with its method, tool, outcome and
//! duration. It never contains a tool's input or output.

use crate::http::LOG_TARGET;
use crate::protocol::tool_result::ERROR_KEY;
use rmcp::model::{CallToolResponse, ErrorData};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Display;
use std::time::Instant;
use tracing::Span;

/// The log line of an in-flight request, written on drop at level *debug*. Nothing is recorded
/// while the log target is disabled.
pub(crate) struct RequestLog(Option<Line>);

impl RequestLog {
    /// Starts the line of a request with this method.
    pub(crate) fn begin(method: impl Display) -> Self {
        // The outcome if the future is dropped.
        let line = || Line {
            request: method.to_string(),
            outcome: "left".into(),
            begun: Instant::now(),
            span: Span::none(),
        };
        Self(tracing::enabled!(target: LOG_TARGET, tracing::Level::DEBUG).then(line))
    }

    /// Attaches the line to a span.
    pub(crate) fn in_span(mut self, span: &Span) -> Self {
        if let Some(line) = &mut self.0 {
            line.span = span.clone();
        }
        self
    }

    /// Records the outcome of a request, and returns its response.
    pub(crate) fn record<T>(mut self, response: Result<T, ErrorData>) -> Result<T, ErrorData> {
        self.set_outcome(|| response.as_ref().map_or_else(error_code, |_| "ok".into()));
        response
    }

    /// Records the outcome of a tool call.
    pub(crate) fn record_call(mut self, response: &Result<CallToolResponse, ErrorData>) {
        self.set_outcome(|| response.as_ref().map_or_else(error_code, outcome));
    }

    fn set_outcome(&mut self, outcome: impl FnOnce() -> Cow<'static, str>) {
        if let Some(line) = &mut self.0 {
            line.outcome = outcome();
        }
    }
}

/// A line of the log.
struct Line {
    request: String,
    outcome: Cow<'static, str>,
    begun: Instant,
    span: Span,
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        if let Some(Line { request, outcome, begun, span }) = &self.0 {
            span.in_scope(
                || tracing::debug!(target: LOG_TARGET, "{request}: {outcome}, {:.1?}", begun.elapsed()),
            );
        }
    }
}

fn error_code(error: &ErrorData) -> Cow<'static, str> {
    format!("error {}", error.code.0).into()
}

/// Returns the outcome of a call: the error class of a failure.
fn outcome(response: &CallToolResponse) -> Cow<'static, str> {
    let result = match response {
        CallToolResponse::Complete(result) => result,
        CallToolResponse::InputRequired(_) => return "asks".into(),
        _ => return "ok".into(),
    };
    let class = || result.meta.as_ref()?.get(ERROR_KEY)?.get("class").and_then(Value::as_str);
    match result.is_error {
        Some(true) => class().unwrap_or("tool_error").to_owned().into(),
        _ => "ok".into(),
    }
}
