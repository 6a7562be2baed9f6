//! The server's info and capabilities, computed from the loaded plugins, so that only supported
//! features are announced.

#![expect(
    deprecated,
    reason = "what the next revision will not have, the clients of the older ones still expect"
)]

use super::era::VERSIONS;
use super::{Changes, Shared, offers};
use palisade::tool::text::cut;
use rmcp::model::{
    Implementation, InitializeRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use std::time::Duration;

/// The instructions for the client's model.
const INSTRUCTIONS: &str = "Each tool runs in a sandbox of its own that sees one workspace directory, and nothing else. Paths are relative to it.";

/// The state of plugin loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loading {
    GoesOn,
    Ended,
}

impl Shared {
    /// Returns whether clients are notified of changes: as announced, or else as configured.
    pub(super) fn changes(&self) -> Changes {
        *self.announced.get().unwrap_or(&self.settings.changes)
    }

    /// Waits up to `patience` for plugins that are still loading, except those that an earlier run
    /// did not finish. If some are still missing then, changes are announced, so that clients learn
    /// of them.
    pub(super) async fn settled(&self, patience: Duration) -> Loading {
        let _ = tokio::time::timeout(patience, self.host.loaded_but_the_last()).await;
        let (loading, changes) = match self.host.progress().has_ended() {
            true => (Loading::Ended, self.settings.changes),
            false => (Loading::GoesOn, Changes::Watched),
        };
        self.announced.get_or_init(|| changes);
        loading
    }
}

/// The maximum length of a client's name and version, in bytes.
pub(super) const NAME: usize = 256;

/// Reduces a client's `initialize` parameters to the fields that are read later. They are kept for
/// the whole session, and a client could fill the rest with mebibytes.
pub(super) fn kept(mut params: InitializeRequestParams) -> InitializeRequestParams {
    let Implementation { name, version, .. } = &params.client_info;
    params.client_info = Implementation::new(cut(name, NAME), cut(version, NAME));
    params.meta = None;
    let capabilities = &mut params.capabilities;
    capabilities.experimental = None;
    capabilities.extensions = None;
    if let Some(sampling) = &mut capabilities.sampling {
        // Only the presence of these fields matters.
        sampling.tools = sampling.tools.take().map(|_| Default::default());
        sampling.context = sampling.context.take().map(|_| Default::default());
    }
    params
}

/// Returns the server's name, capabilities and instructions.
pub(super) fn info(server: &Shared) -> ServerConfig {
    let mut info = ServerConfig::new(capabilities(server)).with_instructions(INSTRUCTIONS);
    info.server_info =
        Implementation::new("palisade", env!("CARGO_PKG_VERSION")).with_title("Palisade");
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
        capabilities.prompts = with.prompts;
        capabilities.completions = with.completions;
    }
    if let Some(tools) = &mut capabilities.tools {
        tools.list_changed = changes;
    }
    if let Some(resources) = &mut capabilities.resources {
        // Clients can subscribe to a resource: it changes when its plugin is replaced.
        resources.list_changed = changes;
        resources.subscribe = changes;
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
    use crate::{Server, Settings};
    use palisade::host::{CacheMode, Host};
    use palisade::plugins::Shipped;
    use palisade::sandbox::{ChildCompiler, Compiler};
    use std::sync::Arc;

    /// The failed compilation leaves a plugin that was tried but not finished.
    #[tokio::test(start_paused = true)]
    async fn client_does_not_wait_for_a_previously_failed_plugin() {
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
        let loading = server.settled(Duration::from_secs(5)).await;
        assert_eq!((failed, loading, begun.elapsed()), (1, Loading::GoesOn, Duration::ZERO));
        server.host.wait_until_loaded().await;
        assert_eq!(server.settled(Duration::ZERO).await, Loading::Ended);
    }

    #[test]
    fn stored_introduction_is_minimal() {
        let long = "x".repeat(1 << 20);
        let introduction = serde_json::json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "experimental": {"a": {"b": long}},
                "extensions": {"c": {"d": long}},
                "sampling": {"tools": {"e": long}, "context": {"f": long}},
                "elicitation": {"form": {}},
                "roots": {"listChanged": true},
            },
            "clientInfo": {"name": long, "version": long, "title": long, "description": long, "websiteUrl": long},
        });
        let kept =
            serde_json::to_value(kept(serde_json::from_value(introduction).unwrap())).unwrap();
        assert!(kept.to_string().len() < 1024, "{kept}");
        assert_eq!(
            kept["capabilities"],
            serde_json::json!({
                "sampling": {"tools": {}, "context": {}},
                "elicitation": {"form": {}},
                "roots": {"listChanged": true},
            })
        );
    }

    /// The paused clock advances while the compiler works, so that each timeout passes at once.
    #[tokio::test(start_paused = true)]
    async fn client_learns_that_plugins_still_compile() {
        let place = tempfile::tempdir().unwrap();
        let plugin = palisade_plugins::hostile();
        let file = place.path().join("plugin.wasm");
        std::fs::write(&file, plugin.bytes()).unwrap();
        let builder =
            Host::builder().workspace(place.path()).shipped(Shipped::LeftOut).plugin_file(file);
        let host = builder.cache(CacheMode::Off).build_in_background().unwrap();
        let server = Server::new(Arc::new(host), Settings::default()).unwrap().0;
        let is_announced = || info(&server).capabilities.tools.unwrap().list_changed;
        assert_eq!(
            (server.settled(Duration::from_secs(5)).await, is_announced()),
            (Loading::GoesOn, Some(true))
        );
        server.host.wait_until_loaded().await;
        assert_eq!(
            (server.settled(Duration::ZERO).await, is_announced()),
            (Loading::Ended, Some(true))
        );
        let another = Server::new(server.host.clone(), Settings::default()).unwrap().0;
        assert_eq!(
            (another.settled(Duration::ZERO).await, another.changes()),
            (Loading::Ended, Changes::Never)
        );
    }
}
