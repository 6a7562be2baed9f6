//! Plugins: found in directories, loaded in parallel, registered in a fixed order. One bad file never empties the list.

mod candidate;
mod homes;
mod loading;
mod reserved;
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
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A plugin that is loaded.
#[derive(Clone)]
pub struct Plugin {
    name: Arc<str>,
    file: String,
    path: Option<PathBuf>,
    source: Source,
    prepared: Arc<Prepared>,
    tools: Vec<Arc<Registered>>,
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

    /// Where what it offers comes from.
    pub(crate) fn origin(&self) -> Origin {
        Origin::Plugin { name: self.name.clone(), digest: self.prepared.digest(), source: self.source.clone() }
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
    /// What it is that is wrong.
    pub cause: Cause,
}

/// What is wrong with a plugin that is not loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The file itself, or its directory.
    File,
    /// A name that it claims is taken: of two plugins the first has it, and that need not be the one that was meant.
    NameTaken,
}

/// Why a plugin is not registered.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) cause: Cause,
}

impl Refusal {
    pub(crate) fn taken(reason: impl std::fmt::Display) -> Self {
        Self { reason: reason.to_string(), cause: Cause::NameTaken }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, cause: Cause::File }
    }
}

/// A plugin that is found and not loaded yet: it is compiled, or waits for that.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compiling {
    /// Its name.
    pub plugin: String,
    /// Its file, made fit to print.
    pub file: String,
}

/// What came of loading.
#[derive(Default, Clone)]
pub struct Loaded {
    /// The plugins that are there.
    pub plugins: Vec<Plugin>,
    /// The files that were refused.
    pub rejected: Vec<Rejected>,
}

/// What has changed since the last look at the files.
#[derive(Default, Clone)]
#[non_exhaustive]
pub struct Rescan {
    /// The plugins that were not there.
    pub loaded: Vec<Plugin>,
    /// Those that have other code than before.
    pub changed: Vec<Plugin>,
    /// Those that are gone. Calls of them that run go on, and end as if nothing had happened.
    pub removed: Vec<Plugin>,
    /// The files that are refused and were not, or for another reason. Where the plugin that such a file held before stays, the reason says so.
    pub rejected: Vec<Rejected>,
}

impl Rescan {
    /// Whether nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loaded.is_empty() && self.changed.is_empty() && self.removed.is_empty() && self.rejected.is_empty()
    }

    pub(crate) fn news(&self) -> impl Iterator<Item = News<'_>> {
        let there = self.loaded.iter().map(News::Loaded).chain(self.changed.iter().map(News::Changed));
        there.chain(self.removed.iter().map(News::Removed)).chain(self.rejected.iter().map(News::Rejected))
    }
}

/// What has become of a plugin.
#[derive(Clone, Copy)]
pub(crate) enum News<'a> {
    Loaded(&'a Plugin),
    Changed(&'a Plugin),
    Removed(&'a Plugin),
    Rejected(&'a Rejected),
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
