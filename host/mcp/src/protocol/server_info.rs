//! The server's name and capabilities, so that only supported features are announced.

#![expect(
    deprecated,
    reason = "capabilities that the next revision drops; clients of older revisions expect them"
)]

use super::lifecycle::VERSIONS;
use rmcp::model::{Implementation, ProtocolVersion, ServerCapabilities, ServerConfig};

/// The instructions for the client's model.
const INSTRUCTIONS: &str = "Paths are relative to one workspace directory. Each call of a plugin runs in a sandbox of its own that sees this directory at most.";

/// The features of a server that depend on its plugins and settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    /// Plugins have resources.
    pub(crate) resources: bool,
    /// Plugins have prompts.
    pub(crate) prompts: bool,
    /// Clients are notified of changes.
    pub(crate) notifications: bool,
}

/// Returns the server's name, capabilities and instructions.
pub(crate) fn server_info(features: Features) -> ServerConfig {
    let mut info = ServerConfig::new(capabilities(features)).with_instructions(INSTRUCTIONS);
    info.server_info =
        Implementation::new("palisade", env!("CARGO_PKG_VERSION")).with_title("Palisade");
    info.protocol_version = VERSIONS.first().cloned().unwrap_or(ProtocolVersion::V_2025_11_25);
    info
}

fn capabilities(features: Features) -> ServerCapabilities {
    let changes = features.notifications.then_some(true);
    let mut capabilities = ServerCapabilities::builder().enable_logging().enable_tools().build();
    if features.resources {
        capabilities.resources = ServerCapabilities::builder().enable_resources().build().resources;
    }
    if features.prompts {
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
