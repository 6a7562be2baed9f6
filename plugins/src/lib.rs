//! The tools that come with Palisade, each a WebAssembly component, embedded into the program.
//!
//! ```
//! let names: Vec<&str> = palisade_plugins::all().iter().map(|plugin| plugin.name).collect();
//! assert_eq!(names, ["calculate", "files", "search"]);
//! ```

/// A shipped plugin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Plugin {
    /// The name of its file, such as `files.wasm`.
    pub file: &'static str,
    /// Its name, such as `files`.
    pub name: &'static str,
    /// The component itself.
    pub bytes: &'static [u8],
    /// The SHA-256 of the component, taken when it was embedded.
    pub digest: [u8; 32],
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
        f.debug_struct("Plugin").field("file", &self.file).field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

include!(concat!(env!("OUT_DIR"), "/plugins.rs"));
