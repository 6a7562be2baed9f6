//! Walks the files below a directory, sorted by name, without ignored ones.

#[cfg(test)]
mod tests;

use crate::unread::{Unread, refusal};
use ignore::{DirEntry, Walk, WalkBuilder};
use palisade_guest::{Error as Refusal, Result};
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// A file, or a directory tree, of a workspace.
pub(crate) struct Tree {
    /// The workspace, as a path for system calls.
    root: PathBuf,
    /// The start of the walk, relative to the workspace; empty for all of it.
    base: PathBuf,
}

/// An entry that is not a directory.
pub(crate) struct Found {
    /// Its path, relative to the workspace.
    pub(crate) path: PathBuf,
    /// Whether it is a regular file, and not a link, a pipe or a device.
    pub(crate) is_file: bool,
}

impl Tree {
    /// Returns the tree below `path` in the workspace of this call.
    pub(crate) fn here(path: &Path) -> Self {
        Self::of(Path::new("."), path)
    }

    /// Returns the tree below `path` in another directory.
    pub(crate) fn of(root: &Path, path: &Path) -> Self {
        let base = path.components().filter(|part| *part != Component::CurDir).collect();
        Self { root: root.to_owned(), base }
    }

    /// Returns the start of the walk, relative to the workspace.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// Returns the path of an entry for system calls.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    /// Returns true if the base is a directory; an error if it cannot be read.
    pub(crate) fn is_directory(&self) -> Result<bool> {
        let metadata =
            fs::metadata(self.at(&self.base)).map_err(|error| refusal(&self.base, error))?;
        Ok(metadata.is_dir())
    }

    /// Visits every file, sorted within each directory, until the visitor stops. Returns the
    /// unreadable entries.
    ///
    /// The walk begins at the workspace and is pruned to the path of the base, so that the ignore
    /// files of parent directories apply. If the base itself is ignored, it is walked separately,
    /// because the caller asked for it.
    pub(crate) fn each(&self, mut visit: impl FnMut(Found) -> Result<Next>) -> Result<Unread> {
        let mut unread = Unread::default();
        let reached = self.walk(self.pruned(), &mut unread, &mut visit)?;
        if !reached {
            self.walk(
                builder(&self.at(&self.base)).filter_entry(|entry| !is_git(entry)).build(),
                &mut unread,
                &mut visit,
            )?;
        }
        Ok(unread)
    }

    /// Walks, and returns true if the base was reached.
    fn walk(
        &self,
        walk: Walk,
        unread: &mut Unread,
        visit: &mut impl FnMut(Found) -> Result<Next>,
    ) -> Result<bool> {
        let mut reached = false;
        for entry in walk {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.note(unread, &error);
                    continue;
                }
            };
            let path = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
            reached |= path.starts_with(&self.base);
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            if is_directory || !path.starts_with(&self.base) {
                continue;
            }
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if visit(Found { path: path.to_owned(), is_file })? == Next::Stop {
                break;
            }
        }
        Ok(reached)
    }

    fn pruned(&self) -> Walk {
        let (root, base) = (self.root.clone(), self.base.clone());
        let keep = move |entry: &DirEntry| {
            let path = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            !is_git(entry) && (path.starts_with(&base) || base.starts_with(path))
        };
        builder(&self.root).filter_entry(keep).build()
    }

    fn note(&self, unread: &mut Unread, error: &ignore::Error) {
        let path = path_of(error).unwrap_or(&self.base);
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        let cause = root_cause(error.io_error().map_or(error as &dyn Error, |error| error));
        unread.add(path, plain(cause));
    }
}

/// The decision of a visitor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// Continue.
    More,
    /// Stop the walk.
    Stop,
}

/// Returns a walk that only depends on the workspace: without user configuration and parent
/// directories. `.gitignore` applies without `.git` as well, because the workspace may be a part of
/// a repository.
fn builder(start: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(start);
    builder
        .hidden(false)
        .parents(false)
        .git_global(false)
        .require_git(false)
        .sort_by_file_name(Ord::cmp);
    builder
}

fn is_git(entry: &DirEntry) -> bool {
    entry.file_name() == ".git"
}

/// Returns the text of an error without the system's error number, which in the sandbox is a WASI
/// number and has another meaning elsewhere.
fn plain(error: &(dyn Error + 'static)) -> String {
    let number = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    number.map_or_else(
        || error.to_string(),
        |number| Refusal::from(io::Error::from_raw_os_error(number)).to_string(),
    )
}

/// Returns the innermost error: the outer ones repeat the path in its internal form.
fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    error.source().map_or(error, root_cause)
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        _ => None,
    }
}
