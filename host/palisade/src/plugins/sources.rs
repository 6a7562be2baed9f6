//! The sources of plugins.

use crate::sandbox::{Adaptation, World};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The sources of plugins.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The shipped plugins.
    pub shipped: Shipped,
    /// Directories, in order. Their `.wasm` files are sorted by the bytes of their names.
    pub directories: Vec<PathBuf>,
    /// Single files.
    pub files: Vec<PathBuf>,
    /// Components of other worlds. A directory that holds one of these files does not load it as a
    /// plugin.
    pub adapted: Vec<AdaptedFile>,
}

/// A component of another world, whose functions become tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdaptedFile {
    /// The path of the component.
    pub path: PathBuf,
    /// How its functions become tools.
    pub adaptation: Arc<Adaptation>,
}

impl AdaptedFile {
    pub(crate) fn new(path: PathBuf, adaptation: Adaptation) -> Self {
        Self { path, adaptation: Arc::new(adaptation) }
    }

    pub(super) fn world(&self) -> World {
        World::Functions(self.adaptation.clone())
    }
}

impl Sources {
    /// Returns true if nothing but shipped plugins is loaded.
    pub(crate) fn is_without_files(&self) -> bool {
        self.directories.is_empty() && self.files.is_empty() && self.adapted.is_empty()
    }

    /// Returns the single files, of plugins and of other components.
    pub(crate) fn single_files(&self) -> impl Iterator<Item = &Path> {
        let adapted = self.adapted.iter().map(|adapted| &adapted.path);
        self.files.iter().chain(adapted).map(PathBuf::as_path)
    }

    /// Removes the files that are adapted from those of a directory.
    pub(super) fn without_adapted(&self, mut files: Vec<PathBuf>) -> Vec<PathBuf> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let adapted: Vec<PathBuf> =
            self.adapted.iter().map(|adapted| real(&adapted.path)).collect();
        if !adapted.is_empty() {
            files.retain(|file| !adapted.contains(&real(file)));
        }
        files
    }
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
