//! Requests while plugins are loading: lists are answered at once, with a short cache lifetime, and
//! requests that run a plugin wait for it.

use crate::lists::resources_and_prompts::{code_of, features};
use crate::protocol::methods::unknown_method;
use crate::protocol::server_info::Features;
use crate::settings::Changes;
use crate::state::{Loading, ServerState};
use rmcp::model::ErrorData;
use std::time::Duration;

/// The wait of a request that runs a plugin, for plugins that are still loading.
const PLUGIN_WAIT: Duration = Duration::from_secs(30);

/// The cache lifetime of a list that does not change, in milliseconds.
const LONG_LIFETIME: u64 = 60_000;
/// The cache lifetime of a list that may change, in milliseconds.
const SHORT_LIFETIME: u64 = 1_000;

/// Returns the cache lifetime of a list, in milliseconds.
pub(super) fn cache_lifetime(server: &ServerState) -> u64 {
    match (server.loading(), server.settings.changes) {
        (Loading::Complete, Changes::Never) => LONG_LIFETIME,
        (Loading::Running, _) | (_, Changes::Watched) => SHORT_LIFETIME,
    }
}

/// Rejects a list whose feature is not announced. Returns its cache lifetime, in milliseconds. It
/// has what is loaded so far, and changes are announced while plugins are loading.
pub(super) fn require(
    server: &ServerState,
    method: &str,
    has_feature: fn(Features) -> bool,
) -> Result<u64, ErrorData> {
    let lifetime = cache_lifetime(server);
    if has_feature(features(server)) { Ok(lifetime) } else { Err(unknown_method(method)) }
}

/// Waits for the plugin of a resource, as long as plugins are loading.
pub(super) async fn wait_for_resource(server: &ServerState, uri: &str) {
    let mut changes = server.host.changes();
    let found = changes.wait_for(|progress| progress.has_ended() || code_of(server, uri).is_some());
    let _ = tokio::time::timeout(PLUGIN_WAIT, found).await;
}

/// Rejects a method whose feature is not announced. Waits for plugins that are still loading, since
/// one of them may be the one that is meant.
pub(super) async fn require_loaded(
    server: &ServerState,
    method: &str,
    has_feature: fn(Features) -> bool,
) -> Result<(), ErrorData> {
    let _ = tokio::time::timeout(PLUGIN_WAIT, server.host.loaded_but_the_last()).await;
    require(server, method, has_feature).map(|_| ())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::Server;
    use crate::settings::Settings;
    use palisade::plugins::Shipped;
    use palisade::sandbox::{ChildCompiler, Compiler};
    use palisade::{CacheMode, Host};
    use std::sync::Arc;

    /// The failed compilation leaves a plugin that was tried but not finished.
    #[tokio::test(start_paused = true)]
    async fn request_does_not_wait_for_a_previously_failed_plugin() {
        let place = tempfile::tempdir().unwrap();
        let plugin = palisade_plugins::hostile();
        let file = place.path().join("plugin.wasm");
        std::fs::write(&file, plugin.bytes()).unwrap();
        let workspace = place.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let builder = || {
            let builder =
                Host::builder().workspace(&workspace).shipped(Shipped::LeftOut).plugin_file(&file);
            builder.cache(CacheMode::Directory(place.path().join("cache")))
        };
        let failing = Compiler::Child(ChildCompiler::palisade("/bin/false"));
        let failed = std::thread::scope(|scope| {
            scope
                .spawn(|| builder().compiler(failing).build().unwrap().rejected().len())
                .join()
                .unwrap()
        });
        let host = builder().build_in_background().unwrap();
        let server = Server::new(Arc::new(host), Settings::default()).unwrap().0;
        let begun = tokio::time::Instant::now();
        server.loading();
        let answer = require_loaded(&server, "prompts/get", |has| has.prompts).await;
        assert_eq!((failed, answer.is_ok(), begun.elapsed()), (1, true, Duration::ZERO));
    }
}
