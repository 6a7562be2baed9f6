//! Requests while plugins are loading: lists are answered at once, with a short cache lifetime, and
//! requests that run a plugin wait for it.

use crate::calls::prompt::{Completed, PluginPrompt, find_completed, find_prompt};
use crate::lists::resources_and_prompts::{features, plugin_of};
use crate::protocol::methods::unknown_method;
use crate::protocol::server_info::Features;
use crate::settings::Changes;
use crate::state::{Loading, ServerState};
use palisade::internal::Account;
use palisade::plugins::{LoadProgress, Plugin};
use rmcp::model::{ErrorData, Reference};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

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

/// Returns the plugin of a resource. Waits for it, as long as plugins are loading.
pub(super) async fn wait_for_resource(
    server: &Arc<ServerState>,
    uri: &str,
    account: Account,
) -> Result<Option<Plugin>, ErrorData> {
    let find = || plugin_of(server, uri, account.clone());
    wait_for(server, LoadProgress::has_ended, find).await
}

/// Returns the prompt of this name. Waits for it, as long as plugins are loading that an earlier
/// run did not leave unfinished.
pub(super) async fn wait_for_prompt(
    server: &Arc<ServerState>,
    name: &str,
) -> Result<Option<PluginPrompt>, ErrorData> {
    let find = || ready(Ok(find_prompt(server, name)));
    wait_for(server, LoadProgress::has_come_to_the_last, find).await
}

/// Returns the subject of a completion. Waits for it as [`wait_for_prompt`] does.
pub(super) async fn wait_for_completed(
    server: &Arc<ServerState>,
    subject: &Reference,
    account: Account,
) -> Result<Option<Completed>, ErrorData> {
    let find = || find_completed(server, subject, account.clone());
    wait_for(server, LoadProgress::has_come_to_the_last, find).await
}

/// Returns the thing that a search finds. A found thing is returned at once, also while plugins are
/// loading: only a thing that no loaded plugin has may belong to a plugin that is still loading.
async fn wait_for<T, F>(
    server: &ServerState,
    is_over: fn(LoadProgress) -> bool,
    find: impl Fn() -> F,
) -> Result<Option<T>, ErrorData>
where
    F: Future<Output = Result<Option<T>, ErrorData>>,
{
    let deadline = Instant::now() + PLUGIN_WAIT;
    let mut changes = server.host.changes();
    loop {
        let is_last = is_over(*changes.borrow_and_update());
        let found = find().await?;
        if is_last || found.is_some() {
            return Ok(found);
        }
        if !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
            return Ok(None);
        }
    }
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
        let begun = Instant::now();
        server.loading();
        let answer = wait_for_prompt(&server, "greet").await;
        assert_eq!((failed, answer.is_ok(), begun.elapsed()), (1, true, Duration::ZERO));
    }
}
