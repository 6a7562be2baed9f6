//! The shipped plugins of Palisade, each a WebAssembly component embedded into the program.
//!
//! ```
//! let plugins = palisade_plugins::all().iter().map(|plugin| plugin.name);
//! let names: Vec<&str> = plugins.filter(|name| *name != "code").collect();
//! assert_eq!(names, ["calculate", "files", "search", "web"]);
//! ```

use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// A shipped plugin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Plugin {
    /// The file name, such as `files.wasm`.
    pub file: &'static str,
    /// The name, such as `files`.
    pub name: &'static str,
    /// The size of the component, in bytes.
    pub size: usize,
    /// The component, compressed with DEFLATE.
    packed: &'static [u8],
    /// The SHA-256 digest of the component, computed at build time.
    pub digest: [u8; 32],
    /// The imports and tools of the component as JSON, in the form of the host's cache. With it a
    /// host lists the tools before it has compiled the component. Empty for [`hostile`].
    pub description: &'static str,
    /// The interface that a grant has to provide before a host loads the plugin, such as
    /// `wasi:http/outgoing-handler`. `None` if it needs no grant.
    pub requires: Option<&'static str>,
}

impl Plugin {
    /// Returns the decompressed component, which takes a few milliseconds per megabyte.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // Decompression can only fail in a corrupt program; empty bytes are then rejected as a
        // component.
        decompress_to_vec_with_limit(self.packed, self.size).unwrap_or_default()
    }
}

/// Returns every shipped plugin, sorted by file name.
pub fn all() -> &'static [Plugin] {
    &PLUGINS
}

/// Returns the plugin of `palisade demo escape`, which attempts to escape. No host registers it by
/// default.
pub fn hostile() -> &'static Plugin {
    &HOSTILE
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("file", &self.file)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

include!(concat!(env!("OUT_DIR"), "/plugins.rs"));

#[cfg(test)]
mod tests {
    use super::{all, hostile};
    use sha2::{Digest as _, Sha256};

    #[test]
    fn unpacked_bytes_equal_the_embedded_ones() {
        for plugin in all().iter().chain([hostile()]) {
            let bytes = plugin.bytes();
            assert_eq!(
                (bytes.len(), Sha256::digest(&bytes).as_slice()),
                (plugin.size, plugin.digest.as_slice())
            );
            assert!(plugin.packed.len() * 2 < plugin.size, "{plugin:?}: {}", plugin.packed.len());
        }
    }
}
