//! A tree that is protected: a directory with all that lies in it, or one file.

use crate::tool::text::elided;
#[cfg(unix)]
use std::ffi::OsString;
use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(unix)]
use super::ascent::{Identity, PIN};
#[cfg(unix)]
use super::names::git_tree;

/// Whether what lies in a protected tree may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It may.
    Allowed,
    /// It may not: the tree holds what is the host's own.
    Refused,
}

/// A protected tree. It is held open, so that it stays the one that was meant, whatever happens to its name; and its name is kept, so that nothing else is
/// put there.
#[derive(Debug)]
pub(crate) struct Tree {
    path: PathBuf,
    reading: Reading,
    #[cfg(unix)]
    pub(super) object: Option<Object>,
    #[cfg(unix)]
    pub(super) entry: Option<Entry>,
}

/// What was there when the tree was protected.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Object {
    pub(super) handle: OwnedFd,
    pub(super) identity: Identity,
    pub(super) is_dir: bool,
}

/// The name under which it stood, or will: where nothing is there yet, this is the first of its path that is missing.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) dir: OwnedFd,
    pub(super) identity: Identity,
    pub(super) name: OsString,
}

impl Tree {
    /// Whether it may be read.
    pub(crate) fn reading(&self) -> Reading {
        self.reading
    }

    /// What it is called in a workspace, for whoever is refused.
    pub(super) fn label(&self, root: &Path) -> Arc<str> {
        let inside = self.path.strip_prefix(root).ok().filter(|path| !path.as_os_str().is_empty());
        let name = inside.or_else(|| self.path.file_name().map(Path::new)).unwrap_or(Path::new("."));
        elided(&name.to_string_lossy(), 256).into()
    }
}

#[cfg(unix)]
impl Tree {
    /// Protects what stands at a path, or will stand there.
    ///
    /// # Errors
    ///
    /// Where no directory above it can be opened.
    pub(crate) fn open(path: &Path, reading: Reading) -> io::Result<Self> {
        let whole = std::path::absolute(path)?;
        if let Ok(real) = whole.canonicalize() {
            let object = Some(Object::open(&real)?);
            let entry = match (real.parent(), real.file_name()) {
                (Some(parent), Some(name)) => Some(Entry::open(parent, name.to_owned())?),
                _ => None,
            };
            return Ok(Self { path: real, reading, object, entry });
        }
        let entry = Entry::first_missing(&whole)?;
        Ok(Self { path: whole, reading, object: None, entry: Some(entry) })
    }

    /// Without the names that are kept in every directory.
    pub(super) fn without_git_names(mut self) -> Self {
        self.entry = self.entry.filter(|entry| git_tree(&entry.name.to_string_lossy()).is_none());
        self
    }
}

#[cfg(unix)]
impl Object {
    fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags, open};
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Self::new(open(path, flags, Mode::empty())?)
    }

    fn new(handle: OwnedFd) -> io::Result<Self> {
        use rustix::fs::{FileType, fstat};
        let stat = fstat(&handle)?;
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        Ok(Self { handle, identity: Identity::from_stat(&stat), is_dir })
    }
}

#[cfg(unix)]
impl Entry {
    fn open(dir: &Path, name: OsString) -> io::Result<Self> {
        let dir = rustix::fs::open(dir, PIN, rustix::fs::Mode::empty())?;
        Ok(Self { identity: Identity::of(&dir)?, dir, name })
    }

    fn first_missing(path: &Path) -> io::Result<Self> {
        let mut name = path.file_name();
        for above in path.ancestors().skip(1) {
            if let (Ok(real), Some(name)) = (above.canonicalize(), name) {
                return Self::open(&real, name.to_owned());
            }
            name = above.file_name();
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

#[cfg(not(unix))]
impl Tree {
    /// Protects what stands at a path. Only names are looked at on this system.
    pub(crate) fn open(path: &Path, reading: Reading) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)?, reading })
    }
}
