//! The two lifecycles of the protocol, and the detection of the one that a request follows.

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use serde_json::Value;

/// The metadata key of a stateless request's protocol revision.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// The metadata key of the capabilities of a stateless request's client.
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// The metadata key of the name and version of a stateless request's client.
pub(crate) const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";

/// The announced revisions: the current one and its predecessor.
pub(crate) const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Older revisions that a handshake may select. They do not differ in any message sent here.
const OLDER: &[ProtocolVersion] = &[ProtocolVersion::V_2025_03_26, ProtocolVersion::V_2025_06_18];

/// The lifecycle that a request follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// With a handshake, and requests in both directions: revisions up to 2025-11-25.
    Stateful,
    /// Self-contained requests, since revision 2026-07-28. A question of the server ends a request;
    /// the next one has the answer.
    Stateless,
}

impl Lifecycle {
    /// Returns the lifecycle of a request: by the revision that it names itself, or else by that of
    /// its handshake.
    pub(crate) fn of_request(context: &RequestContext<RoleServer>) -> Self {
        match context.meta.get(VERSION_KEY).and_then(Value::as_str) {
            Some(version) => Self::of_version(version),
            None => context
                .protocol_version()
                .map_or(Self::Stateful, |version| Self::of_version(version.as_str())),
        }
    }

    /// Returns the lifecycle of a revision.
    pub(crate) fn of_version(version: &str) -> Self {
        // Versions are dates in ISO format, so that they can be compared as text.
        match version >= ProtocolVersion::V_2026_07_28.as_str() {
            true => Self::Stateless,
            false => Self::Stateful,
        }
    }
}

/// Returns the revision for a handshake that requests this one.
pub(crate) fn negotiate(requested: &ProtocolVersion) -> ProtocolVersion {
    if OLDER.contains(requested) { requested.clone() } else { ProtocolVersion::V_2025_11_25 }
}
