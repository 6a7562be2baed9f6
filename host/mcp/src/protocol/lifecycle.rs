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

/// Older revisions that a handshake may select; see [`Dialect`].
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

/// The form of the messages that differ between the revisions of the stateful lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Before 2025-11-25: clients parse the data of each event, so that an event without data fails
    /// them, and know titles of choices only as `enumNames`.
    Older,
    /// Since 2025-11-25: streams begin with an event without data, and choices are `oneOf`.
    Current,
}

impl Dialect {
    /// Returns the dialect of a request, by the revision of its handshake or its own.
    pub(crate) fn of_request(context: &RequestContext<RoleServer>) -> Self {
        context.protocol_version().map_or(Self::Current, |version| Self::of_version(&version))
    }

    /// Returns the dialect of a revision.
    pub(crate) fn of_version(version: &ProtocolVersion) -> Self {
        if OLDER.contains(version) { Self::Older } else { Self::Current }
    }
}

/// Returns the revision for a handshake that requests this one.
pub(crate) fn negotiate(requested: &ProtocolVersion) -> ProtocolVersion {
    if OLDER.contains(requested) { requested.clone() } else { ProtocolVersion::V_2025_11_25 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn only_revisions_before_2025_11_25_are_spoken_in_the_older_dialect() {
        for (asked, dialect) in [
            ("2025-03-26", Dialect::Older),
            ("2025-06-18", Dialect::Older),
            ("2025-11-25", Dialect::Current),
            ("2026-07-28", Dialect::Current),
            // The handshake selects a newer revision.
            ("2024-11-05", Dialect::Current),
        ] {
            let asked: ProtocolVersion = serde_json::from_value(asked.into()).unwrap();
            assert_eq!(Dialect::of_version(&negotiate(&asked)), dialect, "{asked}");
        }
    }
}
