//! Plugins: found in directories, loaded in parallel, registered in a fixed order. A bad file
//! affects no other plugin.

mod candidate;
mod loading;
mod pinned_dirs;
pub(crate) mod reserved;
mod scan;
mod watch;

pub use loading::Progress;
pub(crate) use loading::{Loading, Task};
pub use scan::DirectoryError;
pub use watch::{Watch, WatchError};

use crate::registry::{DuplicateTool, Origin, Registered, Source};
use crate::sandbox::{Freshness, Import, Prepared};
use crate::tool::offer::Offer;
use crate::tool::{Definition, Digest};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A loaded plugin.
#[derive(Clone)]
pub struct Plugin {
    name: Arc<str>,
    file: String,
    path: Option<PathBuf>,
    source: Source,
    prepared: Arc<Prepared>,
    tools: Vec<Arc<Registered>>,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.name)
            .field("file", &self.file)
            .field("prepared", &self.prepared)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    /// Returns the plugin's name: its file name without `.wasm`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the plugin's location in printable form.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the plugin's file, or `None` for a shipped plugin.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the SHA-256 of the plugin's bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.prepared.digest()
    }

    /// Returns the definitions of the plugin's tools.
    #[must_use]
    pub fn definitions(&self) -> &[Definition] {
        self.prepared.definitions()
    }

    /// Returns the plugin's documents and prompts.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        self.prepared.offer()
    }

    /// Returns the origin of the plugin's documents and prompts.
    pub(crate) fn origin(&self) -> Origin {
        Origin::Plugin {
            name: self.name.clone(),
            digest: self.prepared.digest(),
            source: self.source.clone(),
        }
    }

    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// Returns the plugin's imports.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        self.prepared.imports()
    }

    /// Returns whether the plugin was compiled or cached.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.prepared.freshness()
    }
}

/// A rejected plugin file with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The file.
    pub file: String,
    /// The problem, with the accepted form.
    pub reason: String,
    /// The kind of problem.
    pub cause: Cause,
}

/// The kind of problem with a rejected plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The file itself, or its directory.
    File,
    /// A name that the plugin claims is taken. The first plugin has it, which need not be the one
    /// that the user wants.
    NameTaken,
}

/// The reason why a plugin is not registered.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) cause: Cause,
}

impl Refusal {
    pub(crate) fn taken(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), cause: Cause::NameTaken }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, cause: Cause::File }
    }
}

/// A plugin that is found but not loaded: it is compiling or waits for that.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compiling {
    /// The plugin's name.
    pub plugin: String,
    /// The plugin's file in printable form.
    pub file: String,
}

/// The result of loading.
#[derive(Debug, Default, Clone)]
pub struct Loaded {
    /// The loaded plugins.
    pub plugins: Vec<Plugin>,
    /// The rejected files.
    pub rejected: Vec<Rejected>,
}

/// The changes since the previous scan.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Rescan {
    /// The new plugins.
    pub loaded: Vec<Plugin>,
    /// The plugins with new code.
    pub changed: Vec<Plugin>,
    /// The removed plugins. Their running calls finish normally.
    pub removed: Vec<Plugin>,
    /// The files that are newly rejected, or for a new reason. If the file's previous plugin stays,
    /// the reason says so.
    pub rejected: Vec<Rejected>,
}

impl Rescan {
    /// Returns true if nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loaded.is_empty()
            && self.changed.is_empty()
            && self.removed.is_empty()
            && self.rejected.is_empty()
    }

    pub(crate) fn plugin_changes(&self) -> impl Iterator<Item = PluginChange<'_>> {
        let there = self
            .loaded
            .iter()
            .map(PluginChange::Loaded)
            .chain(self.changed.iter().map(PluginChange::Changed));
        there
            .chain(self.removed.iter().map(PluginChange::Removed))
            .chain(self.rejected.iter().map(PluginChange::Rejected))
    }
}

/// A change of a plugin.
#[derive(Clone, Copy)]
pub(crate) enum PluginChange<'a> {
    Loaded(&'a Plugin),
    Changed(&'a Plugin),
    Removed(&'a Plugin),
    Rejected(&'a Rejected),
}

/// A step of loading, for progress displays.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadStep<'a> {
    /// Loading starts with this many plugins.
    Start(usize),
    /// This plugin is loaded or rejected.
    Done(&'a str),
    /// Loading ends for now.
    End,
}

/// A callback for the steps of loading; called from several threads.
pub type LoadObserver = Arc<dyn Fn(LoadStep<'_>) + Send + Sync>;

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

impl Sources {
    /// Returns the files whose content is also reachable outside their plugin directory, so that
    /// protecting the directory is not enough.
    pub(crate) fn elsewhere(&self) -> Vec<PathBuf> {
        scan::elsewhere(self)
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

/// The reason why nothing can be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A directory cannot be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A native tool has a name that is taken.
    #[error(transparent)]
    Native(#[from] DuplicateTool),
}
