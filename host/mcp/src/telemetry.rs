//! The request log, and the spans and metrics of calls, with the names and attributes of
//! OpenTelemetry's semantic conventions for MCP and generative AI:
//! <https://github.com/open-telemetry/semantic-conventions-genai>.
//!
//! Neither logs nor spans contain a tool's input or output.

pub(crate) mod operation;
pub(crate) mod operator_log;
#[cfg(feature = "otel")]
mod otel;
pub(crate) mod request_log;
mod trace_parent;
