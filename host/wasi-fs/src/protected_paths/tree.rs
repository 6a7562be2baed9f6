//! A protected tree: a directory with all its contents, or a single file.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ancestors::{Identity, PIN_ANY};
use super::names::{protected_tree, shown};
use super::symlink_chain::{Entry, SymlinkChain};

/// Whether the contents of a protected tree may be read, from the less strict to the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// Tools may read the tree.
    Allowed,
    /// Tools may not read the tree, since it holds the host's own files.
    Refused,
}

/// A protected tree. It is held open, so that its identity stays valid if it is renamed. Its name
/// and every link to it are reserved, so that nothing else takes its place.
#[derive(Debug)]
pub struct ProtectedTree {
    /// The path as configured.
    path: PathBuf,
    reading: Reading,
    real: Option<PathBuf>,
    pub(super) object: Option<Object>,
    pub(super) entries: Vec<Entry>,
}

/// The file or directory that existed when the tree was protected.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) handle: OwnedFd,
    pub(super) identity: Identity,
    pub(super) is_dir: bool,
}

impl ProtectedTree {
    /// Returns the path as configured.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether tools may read the tree.
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// Returns whether the tree is hidden from reading.
    pub(super) fn is_hidden(&self) -> bool {
        match self.reading {
            Reading::Allowed => false,
            Reading::Refused => true,
        }
    }

    /// Returns the name of the tree within a workspace, for error messages.
    pub(super) fn label(&self, root: &Path) -> Arc<str> {
        let name = self
            .below(root)
            .or_else(|| self.paths().find_map(Path::file_name).map(Path::new))
            .unwrap_or(Path::new("."));
        shown(&name.to_string_lossy()).into()
    }

    /// Returns the path of the tree relative to a directory, judged by its names.
    pub(super) fn below(&self, root: &Path) -> Option<&Path> {
        let below =
            |path| Path::strip_prefix(path, root).ok().filter(|path| !path.as_os_str().is_empty());
        self.paths().find_map(below)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.real.iter().chain([&self.path]).map(PathBuf::as_path)
    }

    /// Protects the file or directory at a path, even if it does not exist yet.
    ///
    /// # Errors
    ///
    /// Fails if it, or one of its parent directories, cannot be held open.
    pub fn open(path: &Path, reading: Reading) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let SymlinkChain { real, entries } = SymlinkChain::follow(&path)?;
        let object = real.as_deref().map(Object::open).transpose()?;
        Ok(Self { path, reading, real, object, entries })
    }

    /// Protects the object at a mount point. If it cannot be opened now, it is opened again at each
    /// check.
    pub(super) fn mounted(point: &Path, reading: Reading) -> Self {
        let unopened =
            |_| Self { path: point.into(), reading, real: None, object: None, entries: Vec::new() };
        Self::open(point, reading).unwrap_or_else(unopened)
    }

    /// Opens the tree at its path again.
    pub(super) fn again(&self) -> io::Result<Self> {
        Self::open(&self.path, self.reading)
    }

    /// Drops the names that are protected in every directory.
    pub(super) fn without_protected_names(mut self) -> Self {
        self.entries.retain(|entry| protected_tree(&entry.name.to_string_lossy()).is_none());
        self
    }

    /// Returns the identity of the file that currently exists at the path.
    pub(super) fn now(&self) -> Option<Identity> {
        rustix::fs::stat(&self.path).ok().map(|stat| Identity::from_stat(&stat))
    }
}

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
