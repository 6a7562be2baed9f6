//! The two generations of the protocol, and the detection of a request's own.

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ProtocolVersion};
use rmcp::service::RequestContext;
use serde_json::Value;

/// The metadata keys of a modern request.
pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// The generation of the protocol that a request follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// With a handshake, and requests in both directions.
    Legacy,
    /// Self-contained requests. A question of the server ends a request; the next one has the
    /// answer.
    Modern,
}

/// The announced revisions: the current one and its predecessor.
pub(crate) const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Older revisions that a handshake may select. They do not differ in any message sent here.
const OLDER: &[ProtocolVersion] = &[ProtocolVersion::V_2025_03_26, ProtocolVersion::V_2025_06_18];

/// Returns the revision for a handshake that requests this one.
pub(crate) fn negotiated(asked: &ProtocolVersion) -> ProtocolVersion {
    if OLDER.contains(asked) { asked.clone() } else { ProtocolVersion::V_2025_11_25 }
}

impl Era {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        // Versions are dates in ISO format, so that they can be compared as text.
        let is_modern = |version: &str| version >= ProtocolVersion::V_2026_07_28.as_str();
        let is_modern = match context.meta.get(VERSION).and_then(Value::as_str) {
            Some(version) => is_modern(version),
            None => context.protocol_version().is_some_and(|version| is_modern(version.as_str())),
        };
        if is_modern { Self::Modern } else { Self::Legacy }
    }
}

/// Returns true if a client with these capabilities can show forms.
pub(crate) fn can_show_forms(capabilities: &ClientCapabilities) -> bool {
    // An empty object means forms: older revisions had no other mode.
    capabilities.elicitation.as_ref().is_some_and(|ways| ways.form.is_some() || ways.url.is_none())
}
