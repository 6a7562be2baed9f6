//! Filters the attributes of exported spans: only those of the OpenTelemetry conventions for MCP
//! and generative AI leave the machine.

use opentelemetry::Context;
use opentelemetry::trace::Status;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use std::time::Duration;

/// The exported attributes. Fields that are added to a span for the log stay in the log.
const SENT: [&str; 9] = [
    ERROR,
    "gen_ai.operation.name",
    "gen_ai.tool.name",
    "jsonrpc.request.id",
    "mcp.method.name",
    "mcp.protocol.version",
    "mcp.session.id",
    "network.transport",
    "rpc.response.status_code",
];

/// The attribute of a failed call.
const ERROR: &str = "error.type";

/// A span processor that filters attributes and passes spans on.
#[derive(Debug)]
pub(super) struct Conventions<P>(pub(super) P);

impl<P: SpanProcessor> SpanProcessor for Conventions<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.0.on_start(span, context);
    }

    fn on_end(&self, mut span: SpanData) {
        span.attributes.retain(|attribute| SENT.contains(&attribute.key.as_str()));
        if span.attributes.iter().any(|attribute| attribute.key.as_str() == ERROR) {
            span.status = Status::error("");
        }
        self.0.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}
