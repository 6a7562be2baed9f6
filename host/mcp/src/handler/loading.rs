//! The wait for plugins that are still loading, and the cache lifetime of lists that follows from
//! it.

use crate::lists::resources_and_prompts::features;
use crate::protocol::methods::unknown_method;
use crate::protocol::server_info::Features;
use crate::settings::Changes;
use crate::state::{Loading, ServerState};
use rmcp::model::ErrorData;
use std::time::Duration;

/// The wait of `initialize` for loading plugins, so that the capabilities are complete.
pub(super) const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);
/// The wait of `tools/list` for loading plugins. Clients allow a server some ten seconds.
pub(super) const LIST_WAIT: Duration = Duration::from_secs(8);

/// The cache lifetime of a list that does not change, in milliseconds.
const LONG_LIFETIME: u64 = 60_000;
/// The cache lifetime of a list that may change, in milliseconds.
const SHORT_LIFETIME: u64 = 1_000;

/// Waits for loading plugins. Returns the cache lifetime of a list, in milliseconds.
pub(super) async fn cache_lifetime(server: &ServerState, timeout: Duration) -> u64 {
    let loading = server.wait_for_plugins(timeout).await;
    match (loading, server.settings.changes) {
        (Loading::Complete, Changes::Never) => LONG_LIFETIME,
        (Loading::Running, _) | (_, Changes::Watched) => SHORT_LIFETIME,
    }
}

/// Rejects a method whose feature is not announced. Returns the cache lifetime of its list, in
/// milliseconds.
pub(super) async fn require(
    server: &ServerState,
    method: &str,
    has_feature: fn(Features) -> bool,
) -> Result<u64, ErrorData> {
    let lifetime = cache_lifetime(server, HANDSHAKE_WAIT).await;
    if has_feature(features(server)) { Ok(lifetime) } else { Err(unknown_method(method)) }
}
