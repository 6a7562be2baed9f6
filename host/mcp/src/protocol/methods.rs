//! The methods that clients may use, by era, and the error for all others.

use crate::protocol::lifecycle::Era;
use palisade::tool::text::elided;
use rmcp::model::{ErrorCode, ErrorData};

/// The methods of both eras whose parameters can be invalid.
const METHODS: &[&str] = &[
    "tools/list",
    "tools/call",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];
/// The methods of revisions before 2026-07-28 only.
const LEGACY_METHODS: &[&str] =
    &["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
/// The method by which modern clients subscribe to changes.
const LISTEN: &str = "subscriptions/listen";

/// Returns true if the era has this method. The method for subscriptions depends on whether the
/// server watches for changes.
pub(crate) fn is_known(method: &str, era: Era, watches: bool) -> bool {
    METHODS.contains(&method)
        || match era {
            Era::Legacy => LEGACY_METHODS.contains(&method),
            Era::Modern => method == LISTEN && watches,
        }
}

/// Creates the error for a method that this server does not have.
pub(crate) fn unknown(method: &str) -> ErrorData {
    let method = elided(method, 64);
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}` here"), None)
}
