//! Exports a call to OpenTelemetry: the caller's span as its parent, and its duration as a metric.

use super::trace_parent::TraceParent;
use crate::clients::client::Client;
use opentelemetry::metrics::Histogram;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Context, KeyValue, global};
use rmcp::model::ProtocolVersion;
use std::sync::LazyLock;
use std::time::Instant;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The maximum length of a propagated `tracestate`, in bytes: the length that the standard asks
/// every implementation to support.
const MAX_STATE: usize = 512;

/// The bucket boundaries of the convention, in seconds.
const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The duration metric. It records nothing unless the program has set a global meter provider.
static DURATION: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    global::meter("palisade")
        .f64_histogram("mcp.server.operation.duration")
        .with_description(
            "How long a request took, from when it was received until it was answered.",
        )
        .with_unit("s")
        .with_boundaries(BOUNDS.to_vec())
        .build()
});

/// Sets the parent of a span to the caller's span.
pub(super) fn set_parent(span: &Span, parent: TraceParent<'_>, state: Option<&str>) {
    if let Some(context) = context(parent, state) {
        // Fails without a tracing layer for OpenTelemetry: nothing is exported then.
        let _ = span.set_parent(Context::new().with_remote_span_context(context));
    }
}

/// Builds the context of the caller's span. A `tracestate` that is malformed or too long is treated
/// as absent, as the standard says.
fn context(parent: TraceParent<'_>, state: Option<&str>) -> Option<SpanContext> {
    let trace = TraceId::from_hex(parent.trace).ok()?;
    let span = SpanId::from_hex(parent.span).ok()?;
    let flags = TraceFlags::new(u8::from_str_radix(parent.flags, 16).ok()?) & TraceFlags::SAMPLED;
    let state = state
        .filter(|state| state.len() <= MAX_STATE)
        .and_then(|state| state.parse::<TraceState>().ok());
    Some(SpanContext::new(trace, span, flags, true, state.unwrap_or_default()))
}

/// The duration of a call, and its attributes.
pub(super) struct CallDuration {
    begun: Instant,
    attributes: Vec<KeyValue>,
}

impl CallDuration {
    /// Starts the clock.
    pub(super) fn begin(client: &Client, version: Option<&ProtocolVersion>) -> Self {
        let mut attributes = vec![
            KeyValue::new("mcp.method.name", "tools/call"),
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("network.transport", client.transport().as_str()),
        ];
        attributes.extend(
            version
                .map(|version| KeyValue::new("mcp.protocol.version", version.as_str().to_owned())),
        );
        Self { begun: Instant::now(), attributes }
    }

    /// Records the duration. Unknown tool names are left out: each name is a time series of its
    /// own, and clients could create them without limit.
    pub(super) fn end(mut self, tool: Option<&str>, error: Option<String>) {
        self.attributes.extend(tool.map(|tool| KeyValue::new("gen_ai.tool.name", tool.to_owned())));
        self.attributes.extend(error.map(|error| KeyValue::new("error.type", error)));
        DURATION.record(self.begun.elapsed().as_secs_f64(), &self.attributes);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03";

    #[test]
    fn parent_is_the_callers_span_and_remote() {
        let context =
            context(TraceParent::parse(PARENT).unwrap(), Some("vendor=value,other=1")).unwrap();
        assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
        assert!(context.is_remote() && context.is_valid());
        assert_eq!(
            context.trace_flags(),
            TraceFlags::SAMPLED,
            "other flags are not ours to pass on"
        );
        assert_eq!(context.trace_state().header(), "vendor=value,other=1");
    }

    #[test]
    fn invalid_trace_state_is_ignored() {
        for state in ["no state".to_owned(), format!("vendor={}", "v".repeat(MAX_STATE))] {
            let context = context(TraceParent::parse(PARENT).unwrap(), Some(&state)).unwrap();
            assert!(context.is_valid());
            assert_eq!(context.trace_state().header(), "", "{state}");
        }
    }
}
