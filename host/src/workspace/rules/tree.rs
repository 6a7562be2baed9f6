//! A tree that is protected: a directory with all that lies in it, or one file.

use crate::tool::Advice;
use crate::tool::text::elided;
use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(unix)]
use super::ascent::{Identity, PIN_ANY};
#[cfg(unix)]
use super::names::git_tree;
#[cfg(unix)]
use super::trail::{Entry, Trail};

/// Whether what lies in a protected tree may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It may.
    Allowed,
    /// It may not: the tree holds what is the host's own.
    Refused,
}

impl Reading {
    /// What an operator can do about what is not read.
    pub(crate) fn advice() -> Advice {
        Advice::new(
            "what was taken for a cache by mistake has a record in `palisade/caches` of your state directory: remove that",
        )
    }
}

/// A protected tree. It is held open, so that it stays the one that was meant, whatever happens to its name; and its name is kept with each link that leads to
/// it, so that nothing else is put there.
#[derive(Debug)]
pub(crate) struct Tree {
    /// As it was written.
    path: PathBuf,
    reading: Reading,
    #[cfg(unix)]
    real: Option<PathBuf>,
    #[cfg(unix)]
    pub(super) object: Option<Object>,
    #[cfg(unix)]
    pub(super) entries: Vec<Entry>,
}

/// What was there when the tree was protected.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Object {
    pub(super) handle: OwnedFd,
    pub(super) identity: Identity,
    pub(super) is_dir: bool,
}

impl Tree {
    /// Its path, as that was written.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it may be read.
    pub(crate) fn reading(&self) -> Reading {
        self.reading
    }

    /// What it is called in a workspace, for whoever is refused.
    pub(super) fn label(&self, root: &Path) -> Arc<str> {
        let name = self
            .below(root)
            .or_else(|| self.paths().find_map(Path::file_name).map(Path::new))
            .unwrap_or(Path::new("."));
        elided(&name.to_string_lossy(), 256).into()
    }

    /// Where it lies below a directory, as far as its own names say.
    pub(super) fn below(&self, root: &Path) -> Option<&Path> {
        let below = |path| Path::strip_prefix(path, root).ok().filter(|path| !path.as_os_str().is_empty());
        self.paths().find_map(below)
    }

    #[cfg(unix)]
    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.real.iter().chain([&self.path]).map(PathBuf::as_path)
    }

    #[cfg(not(unix))]
    fn paths(&self) -> impl Iterator<Item = &Path> {
        [&*self.path].into_iter()
    }
}

#[cfg(unix)]
impl Tree {
    /// Protects what stands at a path, or will stand there.
    ///
    /// # Errors
    ///
    /// Where it, or a directory above it, cannot be held open.
    pub(crate) fn open(path: &Path, reading: Reading) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let Trail { real, entries } = Trail::follow(&path)?;
        let object = real.as_deref().map(Object::open).transpose()?;
        Ok(Self { path, reading, real, object, entries })
    }

    /// The same tree, as its path leads to it by now.
    pub(super) fn again(&self) -> io::Result<Self> {
        Self::open(&self.path, self.reading)
    }

    /// Without the names that are kept in every directory.
    pub(super) fn without_git_names(mut self) -> Self {
        self.entries.retain(|entry| git_tree(&entry.name.to_string_lossy()).is_none());
        self
    }

    /// What the path leads to by now, whatever that was when it was protected.
    pub(super) fn now(&self) -> Option<Identity> {
        rustix::fs::stat(&self.path).ok().map(|stat| Identity::from_stat(&stat))
    }
}

#[cfg(unix)]
impl Object {
    fn open(path: &Path) -> io::Result<Self> {
        Self::new(rustix::fs::open(path, PIN_ANY, rustix::fs::Mode::empty())?)
    }

    fn new(handle: OwnedFd) -> io::Result<Self> {
        use rustix::fs::{FileType, fstat};
        let stat = fstat(&handle)?;
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        Ok(Self { handle, identity: Identity::from_stat(&stat), is_dir })
    }
}

#[cfg(not(unix))]
impl Tree {
    /// Protects what stands at a path. Only names are looked at on this system.
    pub(crate) fn open(path: &Path, reading: Reading) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)?, reading })
    }
}
