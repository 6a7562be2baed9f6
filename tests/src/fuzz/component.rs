//! The fuzz target of the plugin loader: any bytes as a plugin's file.

use std::sync::LazyLock;

use palisade::sandbox::{Cache, Sandbox, Trust};

use super::check_message;

/// Without a cache: every input is a different file.
static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(Cache::off()).expect("the engine starts"));

/// Loads the bytes as a plugin, which either fails with a proper message or yields valid
/// definitions.
///
/// # Panics
///
/// If the message or a definition is invalid.
pub fn component(bytes: &[u8]) {
    match SANDBOX.prepare(bytes, Trust::Untrusted) {
        Err(refused) => check_message(&refused.to_string()),
        Ok(plugin) => {
            assert!(!plugin.definitions().is_empty(), "a plugin has at least one tool");
            for definition in plugin.definitions() {
                palisade::tool::ToolName::parse(definition.name().as_str())
                    .expect("names are checked");
                assert!(definition.parameters().is_object());
            }
        }
    }
}
