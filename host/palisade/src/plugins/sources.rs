//! The sources of plugins.

use std::path::PathBuf;

/// The sources of plugins.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The shipped plugins.
    pub shipped: Shipped,
    /// Directories, in order. Their `.wasm` files are sorted by the bytes of their names.
    pub directories: Vec<PathBuf>,
    /// Single files.
    pub files: Vec<PathBuf>,
}

/// The treatment of the shipped plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shipped {
    /// They are loaded. Their names and `shell` are reserved: a plugin file that claims one is
    /// rejected.
    #[default]
    Included,
    /// They are not loaded, and their names are free.
    LeftOut,
    /// They are not loaded, but the same names are reserved.
    Reserved,
}
