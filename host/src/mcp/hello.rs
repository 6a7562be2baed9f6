//! What the server says of itself: computed from what there is, so that nothing is announced that would not be answered.

#![expect(deprecated, reason = "what the next revision will not have, the clients of the older ones still expect")]

use super::era::VERSIONS;
use super::{Changes, Shared, offers};
use rmcp::model::{Implementation, ProtocolVersion, ServerCapabilities, ServerConfig};

/// What a client's model is told of the server as a whole.
const INSTRUCTIONS: &str = "Each tool runs in a sandbox of its own that sees one workspace directory, and nothing else. Paths are relative to it.";

/// Its name, its capabilities, and a word for the model.
pub(super) fn info(server: &Shared) -> ServerConfig {
    let mut info = ServerConfig::new(capabilities(server)).with_instructions(INSTRUCTIONS);
    info.server_info = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).with_title("Palisade");
    info.protocol_version = VERSIONS.first().cloned().unwrap_or(ProtocolVersion::V_2025_11_25);
    info
}

fn capabilities(server: &Shared) -> ServerCapabilities {
    let offered = offers::kinds(server);
    let changes = (server.settings.changes == Changes::Watched).then_some(true);
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
