//! The tools that come with Palisade, each a WebAssembly component, embedded into the program.
//!
//! ```
//! let names: Vec<&str> = palisade_plugins::all().iter().map(|plugin| plugin.name).collect();
//! assert_eq!(names, ["calculate", "files", "search"]);
//! ```

use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// A shipped plugin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Plugin {
    /// The name of its file, such as `files.wasm`.
    pub file: &'static str,
    /// Its name, such as `files`.
    pub name: &'static str,
    /// How large the component is, in bytes.
    pub size: usize,
    /// The component, packed by DEFLATE.
    packed: &'static [u8],
    /// The SHA-256 of the component, taken when it was embedded.
    pub digest: [u8; 32],
}

impl Plugin {
    /// The component itself, unpacked: a few milliseconds for each megabyte.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // What was packed into the program can be unpacked, or the program is broken: no bytes are no component.
        decompress_to_vec_with_limit(self.packed, self.size).unwrap_or_default()
    }
}

/// Every shipped plugin, in the order of their file names by bytes.
pub fn all() -> &'static [Plugin] {
    &PLUGINS
}

/// The plugin that `palisade demo escape` sets free: it tries to get out. No host registers it by itself.
pub fn hostile() -> &'static Plugin {
    &HOSTILE
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("file", &self.file).field("size", &self.size).finish_non_exhaustive()
    }
}

include!(concat!(env!("OUT_DIR"), "/plugins.rs"));

#[cfg(test)]
mod tests {
    use super::{all, hostile};
    use sha2::{Digest as _, Sha256};

    #[test]
    fn what_is_unpacked_is_what_was_embedded() {
        for plugin in all().iter().chain([hostile()]) {
            let bytes = plugin.bytes();
            assert_eq!((bytes.len(), Sha256::digest(&bytes).as_slice()), (plugin.size, plugin.digest.as_slice()));
            assert!(plugin.packed.len() * 2 < plugin.size, "{plugin:?}: {}", plugin.packed.len());
        }
    }
}
