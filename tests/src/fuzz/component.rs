//! The loader's border: any bytes, as a plugin's file.

use std::sync::LazyLock;

use palisade::sandbox::{Cache, Sandbox, Trust};

use super::check_message;

/// Without a cache, since each file is another one.
static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| Sandbox::new(Cache::off()).expect("the engine starts"));

/// Loads the bytes as a plugin: they are refused with a reason, or everything they say of themselves is in order.
///
/// # Panics
///
/// Where that does not hold.
pub fn component(bytes: &[u8]) {
    match SANDBOX.prepare(bytes, Trust::Nobody) {
        Err(refused) => check_message(&refused.to_string()),
        Ok(plugin) => {
            assert!(!plugin.definitions().is_empty(), "a plugin without tools is none");
            for definition in plugin.definitions() {
                palisade::tool::ToolName::parse(definition.name().as_str()).expect("names are checked");
                assert!(definition.parameters().is_object());
            }
        }
    }
}
