//! What the server says of itself: computed from what there is, so that nothing is announced that would not be answered.

#![expect(deprecated, reason = "what the next revision will not have, the clients of the older ones still expect")]

use super::era::VERSIONS;
use super::{Changes, Shared, offers};
use rmcp::model::{Implementation, ProtocolVersion, ServerCapabilities, ServerConfig};
use std::time::Duration;

/// What a client's model is told of the server as a whole.
const INSTRUCTIONS: &str = "Each tool runs in a sandbox of its own that sees one workspace directory, and nothing else. Paths are relative to it.";

/// Whether all plugins are there that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loading {
    GoesOn,
    Ended,
}

impl Shared {
    /// Whether clients can hear of anything later.
    pub(super) fn changes(&self) -> Changes {
        *self.announced.get().unwrap_or(&self.settings.changes)
    }

    /// Waits for plugins that are still being loaded, for so long at most. Of one that takes longer clients hear when it is there, although nothing else changes.
    pub(super) async fn settled(&self, patience: Duration) -> Loading {
        let (loading, changes) = match tokio::time::timeout(patience, self.host.loaded()).await {
            Ok(()) => (Loading::Ended, self.settings.changes),
            Err(_) => (Loading::GoesOn, Changes::Watched),
        };
        self.announced.get_or_init(|| changes);
        loading
    }
}

/// Its name, its capabilities, and a word for the model.
pub(super) fn info(server: &Shared) -> ServerConfig {
    let mut info = ServerConfig::new(capabilities(server)).with_instructions(INSTRUCTIONS);
    info.server_info = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).with_title("Palisade");
    info.protocol_version = VERSIONS.first().cloned().unwrap_or(ProtocolVersion::V_2025_11_25);
    info
}

fn capabilities(server: &Shared) -> ServerCapabilities {
    let offered = offers::kinds(server);
    let changes = (server.changes() == Changes::Watched).then_some(true);
    let mut capabilities = ServerCapabilities::builder().enable_logging().enable_tools().build();
    if offered.documents {
        capabilities.resources = ServerCapabilities::builder().enable_resources().build().resources;
    }
    if offered.prompts {
        let with = ServerCapabilities::builder().enable_prompts().enable_completions().build();
        (capabilities.prompts, capabilities.completions) = (with.prompts, with.completions);
    }
    if let Some(tools) = &mut capabilities.tools {
        tools.list_changed = changes;
    }
    if let Some(resources) = &mut capabilities.resources {
        // A document is taken for another when the plugin that it comes from is.
        (resources.list_changed, resources.subscribe) = (changes, changes);
    }
    if let Some(prompts) = &mut capabilities.prompts {
        prompts.list_changed = changes;
    }
    capabilities
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::host::{CacheMode, Host};
    use crate::mcp::{Server, Settings};
    use crate::plugins::Shipped;
    use std::sync::Arc;

    /// Under a clock that moves on whenever nothing else does, compiling takes for ever.
    #[tokio::test(start_paused = true)]
    async fn who_says_hello_while_plugins_are_compiled_is_told_that_more_will_come() {
        let place = tempfile::tempdir().unwrap();
        let (plugin, file) = (palisade_plugins::hostile(), place.path().join("plugin.wasm"));
        std::fs::write(&file, plugin.bytes()).unwrap();
        let builder = Host::builder().workspace(place.path()).shipped(Shipped::LeftOut).plugin_file(file);
        let host = builder.cache(CacheMode::Off).build_in_background().unwrap();
        let server = Server::new(Arc::new(host), Settings::default()).unwrap().0;
        let is_announced = || info(&server).capabilities.tools.unwrap().list_changed;
        assert_eq!((server.settled(Duration::from_secs(5)).await, is_announced()), (Loading::GoesOn, Some(true)));
        server.host.loaded().await;
        assert_eq!((server.settled(Duration::ZERO).await, is_announced()), (Loading::Ended, Some(true)));
        let another = Server::new(server.host.clone(), Settings::default()).unwrap().0;
        assert_eq!((another.settled(Duration::ZERO).await, another.changes()), (Loading::Ended, Changes::Never));
    }
}
