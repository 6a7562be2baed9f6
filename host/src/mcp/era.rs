//! The two ways in which the protocol has worked, and which of them a request follows.

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ProtocolVersion};
use rmcp::service::RequestContext;
use serde_json::Value;

/// What a request of the current revision says of itself, each under its key.
pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// How a request has to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// After a handshake, with requests in both directions.
    Legacy,
    /// Each request for itself; what the server needs to know ends a request, and comes with the next.
    Modern,
}

/// The revisions that are announced: the current one and the one before it.
pub(super) const VERSIONS: &[ProtocolVersion] = &[ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Older ones that a client may ask for in its handshake: what is different in them is nothing that is sent here.
const OLDER: &[ProtocolVersion] = &[ProtocolVersion::V_2025_03_26, ProtocolVersion::V_2025_06_18];

/// The revision of a connection whose client asks for this one in its handshake.
pub(super) fn negotiated(asked: &ProtocolVersion) -> ProtocolVersion {
    if OLDER.contains(asked) { asked.clone() } else { ProtocolVersion::V_2025_11_25 }
}

impl Era {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        // Versions are dates, so that their order is that of their texts.
        let is_modern = |version: &str| version >= ProtocolVersion::V_2026_07_28.as_str();
        let is_modern = match context.meta.get(VERSION).and_then(Value::as_str) {
            Some(version) => is_modern(version),
            None => context.protocol_version().is_some_and(|version| is_modern(version.as_str())),
        };
        if is_modern { Self::Modern } else { Self::Legacy }
    }
}

/// Whether a client that can do this can show its user a form.
pub(super) fn can_show_forms(capabilities: &ClientCapabilities) -> bool {
    // A client that names neither way means forms: there were no others when it was written.
    capabilities.elicitation.as_ref().is_some_and(|ways| ways.form.is_some() || ways.url.is_none())
}
