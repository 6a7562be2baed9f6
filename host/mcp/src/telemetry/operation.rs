//! The span of a call, as part of its sender's trace.

#[cfg(feature = "otel")]
use super::otel;
use super::request_log::RequestLog;
use super::trace_parent::TraceParent;
use crate::clients::client::Client;
use crate::sessions::SessionRef;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorData, ProtocolVersion};
use rmcp::service::RequestContext;
use tracing::Span;
use tracing::field::{Empty, display};

/// An in-flight call, with its span, its log line and its duration metric.
pub(crate) struct Operation {
    span: Span,
    log: RequestLog,
    #[cfg(feature = "otel")]
    duration: otel::CallDuration,
    #[cfg(feature = "otel")]
    tool: String,
}

impl Operation {
    /// Starts the span of a call to this tool.
    pub(crate) fn begin(context: &RequestContext<RoleServer>, client: &Client, tool: &str) -> Self {
        let version = context.protocol_version();
        let span = span(context, client, tool, version.as_ref());
        set_parent(&span, context);
        Self {
            log: RequestLog::begin(format_args!("tools/call {tool}")).in_span(&span),
            span,
            #[cfg(feature = "otel")]
            duration: otel::CallDuration::begin(client, version.as_ref()),
            #[cfg(feature = "otel")]
            tool: tool.to_owned(),
        }
    }

    /// Returns the span.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records the result of the call.
    pub(crate) fn end(self, response: &Result<CallToolResponse, ErrorData>) {
        self.log.record_call(response);
        let error = error_type(response);
        if let Some(error) = &error {
            self.span.record("error.type", &**error);
        }
        if let Err(error) = response {
            self.span.record("rpc.response.status_code", display(error.code.0));
        }
        #[cfg(feature = "otel")]
        self.duration.end(response.is_ok().then_some(&self.tool), error);
    }
}

fn span(
    context: &RequestContext<RoleServer>,
    client: &Client,
    tool: &str,
    version: Option<&ProtocolVersion>,
) -> Span {
    let session =
        context.extensions.get::<SessionRef>().map_or(client.name(), |session| &*session.id);
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

/// Sets the parent of a span to the sender's span, if the request names one.
fn set_parent(span: &Span, context: &RequestContext<RoleServer>) {
    let Some(parent) = context.meta.get_traceparent().and_then(TraceParent::parse) else { return };
    span.record("trace_id", parent.trace)
        .record("parent_id", parent.span)
        .record("trace_flags", parent.flags);
    #[cfg(feature = "otel")]
    otel::set_parent(span, parent, context.meta.get_tracestate());
}

/// Returns the error type of a response, or `None` for a success.
fn error_type(response: &Result<CallToolResponse, ErrorData>) -> Option<String> {
    match response {
        Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
            Some("tool_error".to_owned())
        }
        Ok(_) => None,
        Err(error) => Some(error.code.0.to_string()),
    }
}
