//! Plugins: found in directories, loaded in parallel, registered in a fixed order. One bad file never empties the list.

mod candidate;
mod loading;
mod reserved;
mod scan;

pub use loading::Progress;
pub(crate) use loading::{Decision, Loading, Task};
pub use scan::DirectoryError;

use crate::registry::DuplicateTool;
use crate::sandbox::{Freshness, Import, Prepared};
use crate::tool::offer::Offer;
use crate::tool::{Definition, Digest};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A plugin that is loaded.
#[derive(Clone)]
pub struct Plugin {
    name: Arc<str>,
    file: String,
    path: Option<PathBuf>,
    prepared: Arc<Prepared>,
}

impl Plugin {
    /// Its name: its file's name without `.wasm`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it came from, made fit to print.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Its file; nothing for a plugin that comes with the host.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The SHA-256 of its bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.prepared.digest()
    }

    /// Its tools.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        self.prepared.definitions()
    }

    /// What it offers besides tools: documents, and prompts.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        self.prepared.offer()
    }

    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// What it imports.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        self.prepared.imports()
    }

    /// Whether it had to be compiled.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.prepared.freshness()
    }
}

/// A plugin that is not loaded, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its file.
    pub file: String,
    /// What is wrong with it, and what would be accepted.
    pub reason: String,
}

/// What came of loading.
#[derive(Default, Clone)]
pub struct Loaded {
    /// The plugins that are there.
    pub plugins: Vec<Plugin>,
    /// The files that were refused.
    pub rejected: Vec<Rejected>,
}

/// A step of loading, for whoever shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadStep<'a> {
    /// So many plugins are going to be loaded.
    Start(usize),
    /// This one is done, one way or the other.
    Done(&'a str),
    /// All are that are going to be for now.
    End,
}

/// Takes the steps of loading; called from several threads.
pub type LoadObserver = Arc<dyn Fn(LoadStep<'_>) + Send + Sync>;

/// Where plugins come from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Those that come with the host.
    pub shipped: Shipped,
    /// Directories, in order; their `.wasm` files by the bytes of their names.
    pub directories: Vec<PathBuf>,
    /// Single files.
    pub files: Vec<PathBuf>,
}

impl Sources {
    /// The files of its directories whose content stands elsewhere as well, so that protecting the directory is not enough.
    pub(crate) fn elsewhere(&self) -> Vec<PathBuf> {
        scan::elsewhere(self)
    }
}

/// Whether the shipped plugins are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shipped {
    /// They are.
    #[default]
    Included,
    /// They are not, and their names are free.
    LeftOut,
    /// They are not, and their names stay theirs: a plugin from a file that would take one is rejected.
    Reserved,
}

/// Why nothing could be loaded at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A directory cannot be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The program that embeds the host brings a tool whose name is taken.
    #[error(transparent)]
    Native(#[from] DuplicateTool),
}
