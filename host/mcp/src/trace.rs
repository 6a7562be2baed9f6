//! Tracing of calls: one span per call as part of the caller's trace, with the names and attributes
//! of OpenTelemetry's semantic conventions for MCP and generative AI.
//!
//! Spans never contain a tool's input or output. The conventions:
//! <https://github.com/open-telemetry/semantic-conventions-genai>.

#[cfg(feature = "otel")]
mod remote;

use super::client::Client;
use super::noted::Noted;
use super::sessions::Seat;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorData, ProtocolVersion};
use rmcp::service::RequestContext;
use tracing::Span;
use tracing::field::{Empty, display};

/// The parent span of a request: the `traceparent` of W3C Trace Context,
/// <https://www.w3.org/TR/trace-context/>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parent<'a> {
    pub(super) trace: &'a str,
    pub(super) span: &'a str,
    pub(super) flags: &'a str,
}

impl<'a> Parent<'a> {
    /// Parses version 00, and the fields that later versions share with it. Returns `None` for a
    /// malformed value, which the standard treats as absent.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(5, '-');
        let version = hex(parts.next()?, 2).filter(|version| *version != "ff")?;
        let trace = hex(parts.next()?, 32).filter(|id| !is_zero(id))?;
        let span = hex(parts.next()?, 16).filter(|id| !is_zero(id))?;
        let flags = hex(parts.next()?, 2)?;
        let is_whole = version != "00" || parts.next().is_none();
        is_whole.then_some(Self { trace, span, flags })
    }
}

fn hex(text: &str, length: usize) -> Option<&str> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == length && text.bytes().all(is_digit)).then_some(text)
}

fn is_zero(id: &str) -> bool {
    id.bytes().all(|byte| byte == b'0')
}

/// An in-flight call, with its span, its log line and its duration metric.
pub(super) struct Operation {
    span: Span,
    noted: Noted,
    #[cfg(feature = "otel")]
    measure: (remote::Measure, String),
}

impl Operation {
    /// Starts the span of a call to this tool.
    pub(super) fn begin(context: &RequestContext<RoleServer>, client: &Client, tool: &str) -> Self {
        let version = context.protocol_version();
        let span = span(context, client, (tool, version.as_ref()));
        adopt(&span, context);
        Self {
            noted: Noted::begin(format_args!("tools/call {tool}")).within(&span),
            span,
            #[cfg(feature = "otel")]
            measure: (remote::Measure::begin(client, version.as_ref()), tool.to_owned()),
        }
    }

    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records the result of the call.
    pub(super) fn end(self, answer: &Result<CallToolResponse, ErrorData>) {
        self.noted.called(answer);
        let error = failure(answer);
        if let Some(error) = &error {
            self.span.record("error.type", &**error);
        }
        if let Err(error) = answer {
            self.span.record("rpc.response.status_code", display(error.code.0));
        }
        #[cfg(feature = "otel")]
        {
            let (measure, tool) = self.measure;
            measure.end(answer.is_ok().then_some(&tool), error);
        }
    }
}

fn span(
    context: &RequestContext<RoleServer>,
    client: &Client,
    called: (&str, Option<&ProtocolVersion>),
) -> Span {
    let session = context.extensions.get::<Seat>().map_or(client.name(), |seat| &*seat.session);
    let (tool, version) = called;
    tracing::info_span!(
        "mcp",
        otel.name = %format_args!("tools/call {tool}"),
        otel.kind = "server",
        mcp.method.name = "tools/call",
        mcp.protocol.version = version.map(ProtocolVersion::as_str),
        mcp.session.id = session,
        jsonrpc.request.id = %context.id,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        network.transport = client.transport().as_str(),
        error.type = Empty,
        rpc.response.status_code = Empty,
        trace_id = Empty,
        parent_id = Empty,
        trace_flags = Empty,
    )
}

/// Sets the parent of a span to the caller's span, if the request names one.
fn adopt(span: &Span, context: &RequestContext<RoleServer>) {
    let Some(parent) = context.meta.get_traceparent().and_then(Parent::parse) else { return };
    span.record("trace_id", parent.trace)
        .record("parent_id", parent.span)
        .record("trace_flags", parent.flags);
    #[cfg(feature = "otel")]
    remote::adopt(span, parent, context.meta.get_tracestate());
}

/// Returns the error type of a response, or `None` for a success.
fn failure(answer: &Result<CallToolResponse, ErrorData>) -> Option<String> {
    match answer {
        Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
            Some("tool_error".to_owned())
        }
        Ok(_) => None,
        Err(error) => Some(error.code.0.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn trace_parent_follows_the_standard() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let span = "00f067aa0ba902b7";
        let parent = Some(Parent { trace, span, flags: "01" });
        assert_eq!(Parent::parse(&format!("00-{trace}-{span}-01")), parent);
        assert_eq!(Parent::parse(&format!("cc-{trace}-{span}-01-what-comes-later")), parent);
    }

    #[test]
    fn invalid_trace_parent_is_ignored() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let span = "00f067aa0ba902b7";
        let zeros = |count: usize| "0".repeat(count);
        for text in [
            String::new(),
            "00".to_owned(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("0-{trace}-{span}-01"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{}-{span}-01", zeros(32)),
            format!("00-{trace}-{}-01", zeros(16)),
            format!("00-{trace}x-{span}-01"),
            format!("00-{trace}-{span}-zz"),
            format!("00-{trace}-{span}-01\n"),
        ] {
            assert_eq!(Parent::parse(&text), None, "{text:?}");
        }
    }
}
