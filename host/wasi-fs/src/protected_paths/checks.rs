//! Checks of a name in an open directory, by the identity and the real location of both.

use super::ancestors::{Identity, ascend};
use super::bare::{is_bare, is_part};
use super::names::{self, GIT};
use super::symlink_chain::{Entry, Role};
use super::tree::Object;
use super::{Forbidden, ProtectedPaths, ProtectedTree};
use rustix::fs::{AtFlags, FileType, statat};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

impl ProtectedPaths {
    /// Refuses to change the directory itself or its entries. A bare repository may be moved as a
    /// whole, since it stays a repository. Returns the depth of the directory, 0 for the workspace.
    #[doc(hidden)]
    pub fn check_dir(&self, dir: BorrowedFd<'_>) -> Result<u64, Forbidden> {
        self.check_dir_beside(dir, &self.appeared())
    }

    /// Checks the directory with a given list of trees that appeared after the rules were created.
    fn check_dir_beside(
        &self,
        dir: BorrowedFd<'_>,
        appeared: &[(Arc<str>, ProtectedTree)],
    ) -> Result<u64, Forbidden> {
        let mut depth = 0_u64;
        let replaced: Vec<_> = self.replaced().collect();
        // Reported last, since protection by name or identity comes with a label.
        let mut in_bare = is_bare(dir);
        // A directory with a `.git` is a working tree, also within a bare repository. But if it has
        // the entries of a repository itself, its `.git` may lead to it, or be none.
        let mut in_work_tree = Identity::at(dir, GIT).is_some();
        ascend(dir, self.root, |here, above| {
            self.check_identity(here)?;
            if let Some((label, _)) = appeared.iter().find(|(_, tree)| tree.is(here)) {
                return Err(Forbidden::Protected(label.clone()));
            }
            if let Some((label, _)) = replaced.iter().find(|(_, now)| *now == here) {
                return Err(Forbidden::Protected(Arc::clone(label)));
            }
            let git = Identity::at(above, GIT);
            if git == Some(here) {
                return Err(Forbidden::Protected(GIT.into()));
            }
            in_bare |= is_bare(above) && (!in_work_tree || is_part(above, here));
            in_work_tree |= git.is_some();
            depth = depth.saturating_add(1);
            Ok(())
        })?;
        self.check_identity(self.root)?;
        self.check_around()?;
        if in_bare { Err(Forbidden::Bare) } else { Ok(depth) }
    }

    /// Refuses to create, change or remove a name in a directory. Returns the depth of the entry, 1
    /// for one of the workspace directory.
    #[doc(hidden)]
    pub fn check_entry(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<u64, Forbidden> {
        self.check_names(&name.to_string_lossy())?;
        let appeared = self.appeared();
        let depth = self.check_dir_beside(dir, &appeared)?.saturating_add(1);
        self.check_reserved(dir, name)?;
        let found = Identity::at(dir, name);
        check_appeared(&appeared, dir, name, found)?;
        let Some(found) = found else { return Ok(depth) };
        self.check_identity(found)?;
        // An alternative form of the name, which this file system folds to a protected one.
        let protected =
            names::PROTECTED.iter().find(|name| Identity::at(dir, **name) == Some(found));
        protected.map_or(Ok(depth), |name| Err(Forbidden::Protected((*name).into())))
    }

    /// Refuses to move or remove a directory that contains a protected tree or a link to one: the
    /// tree would move to an unprotected name, and another one could take its place. The
    /// directory's own `.git` moves with it and stays protected by name.
    pub(crate) fn check_moved(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Forbidden> {
        if self.trees.is_empty() {
            return Ok(());
        }
        let Ok(stat) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Ok(());
        }
        let moved = Identity::from_stat(&stat);
        let appeared = self.appeared();
        let trees = self.trees.iter().map(|(label, tree)| (label, &**tree));
        let trees = trees.chain(appeared.iter().map(|(label, tree)| (label, tree)));
        let starts = trees.flat_map(|(label, tree)| tree.starts().map(move |start| (label, start)));
        for (label, start) in starts {
            let stays = |here| {
                if here == moved { Err(Forbidden::Protected(label.clone())) } else { Ok(()) }
            };
            match ascend(start, self.root, |here, _| stays(here)) {
                // The tree lies elsewhere, or has left the workspace since.
                Ok(()) | Err(Forbidden::Outside) => {}
                met => return met,
            }
        }
        Ok(())
    }

    /// Refuses to read a name in a directory if it lies in a hidden tree: the original one or its
    /// current replacement.
    #[doc(hidden)]
    pub fn check_readable(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Forbidden> {
        if !self.hide_anything() {
            return Ok(());
        }
        let hidden: Vec<_> = self.hidden().map(|(label, tree)| (label, tree, tree.now())).collect();
        let check = |here| {
            let met = hidden.iter().find(|(_, tree, now)| tree.is(here) || *now == Some(here));
            met.map_or(Ok(()), |(label, ..)| Err(Forbidden::Hidden(Arc::clone(label))))
        };
        check(self.root)?;
        ascend(dir, self.root, |here, _| check(here))?;
        let own = Identity::from_handle(dir)?;
        if let Some((label, ..)) = hidden.iter().find(|(_, tree, _)| tree.ends_at(own, name)) {
            return Err(Forbidden::Hidden(Arc::clone(label)));
        }
        Identity::at(dir, name).map_or(Ok(()), check)
    }

    /// Refuses to change an open file that is itself a protected tree.
    pub(crate) fn check_identity(&self, identity: Identity) -> Result<(), Forbidden> {
        let met = self.trees.iter().find(|(_, tree)| tree.is(identity));
        met.map_or(Ok(()), |(label, _)| Err(Forbidden::Protected(label.clone())))
    }

    /// Returns whether a directory is the workspace or lies in it.
    #[doc(hidden)]
    pub fn lies_inside(&self, dir: BorrowedFd<'_>) -> io::Result<bool> {
        match ascend(dir, self.root, |_, _| Ok(())) {
            Ok(()) => Ok(true),
            Err(Forbidden::Unknown(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Returns whether a tree, or a link to it, lies in this workspace or is the workspace. Also
    /// true if the system cannot tell.
    pub(crate) fn holds(&self, tree: &ProtectedTree) -> bool {
        let lies_outside =
            |start| matches!(ascend(start, self.root, |_, _| Ok(())), Err(Forbidden::Outside));
        tree.starts().any(|start| !lies_outside(start))
    }

    /// Returns the current directories at the paths of protected trees that another program has
    /// moved or removed. Costs nothing without trees that are protected by name.
    fn replaced(&self) -> impl Iterator<Item = (&Arc<str>, Identity)> {
        let directories = self.trees.iter().filter(|(_, tree)| tree.is_named_directory());
        directories
            .filter_map(|(label, tree)| Some((label, tree.now().filter(|now| !tree.is(*now))?)))
    }

    /// Returns the trees that did not exist when the rules were created and may exist now. Their
    /// contents are protected only by identity, and a directory created since may lead to names
    /// that are not reserved yet. Costs one look-up for each missing name, and nothing if every
    /// tree existed.
    fn appeared(&self) -> Vec<(Arc<str>, ProtectedTree)> {
        let appeared = self.trees.iter().filter(|(_, tree)| tree.may_have_appeared());
        appeared.filter_map(|(label, tree)| Some((label.clone(), tree.again().ok()?))).collect()
    }

    fn hidden(&self) -> impl Iterator<Item = &(Arc<str>, Arc<ProtectedTree>)> {
        self.trees.iter().filter(|(_, tree)| tree.is_hidden())
    }

    /// Refuses a name reserved for a tree or for a link to it, in any form that some file system
    /// folds to it, whether it exists or not.
    fn check_reserved(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Forbidden> {
        if self.trees.iter().all(|(_, tree)| tree.entries.is_empty()) {
            return Ok(());
        }
        let dir = Identity::from_handle(dir)?;
        let met = self
            .trees
            .iter()
            .find(|(_, tree)| tree.entries.iter().any(|entry| entry.is(dir, name)));
        met.map_or(Ok(()), |(label, _)| Err(Forbidden::Protected(label.clone())))
    }
}

/// Refuses a name that leads to a tree which appeared later, or whose entry is such a tree.
fn check_appeared(
    appeared: &[(Arc<str>, ProtectedTree)],
    dir: BorrowedFd<'_>,
    name: &OsStr,
    found: Option<Identity>,
) -> Result<(), Forbidden> {
    if appeared.is_empty() {
        return Ok(());
    }
    let dir = Identity::from_handle(dir)?;
    let leads = |tree: &ProtectedTree| tree.entries.iter().any(|entry| entry.is(dir, name));
    let met =
        appeared.iter().find(|(_, tree)| leads(tree) || found.is_some_and(|found| tree.is(found)));
    met.map_or(Ok(()), |(label, _)| Err(Forbidden::Protected(label.clone())))
}

impl Entry {
    fn is(&self, dir: Identity, name: &OsStr) -> bool {
        self.identity == dir && names::is_same(&self.name, name)
    }
}

impl ProtectedTree {
    /// Returns whether the tree is the file or directory with this identity.
    #[doc(hidden)]
    pub fn is(&self, identity: Identity) -> bool {
        self.object.as_ref().is_some_and(|object| object.identity == identity)
    }

    /// Returns whether the tree was missing when it was protected, and its name exists now or could
    /// not be reserved because a parent directory was missing.
    fn may_have_appeared(&self) -> bool {
        if self.object.is_some() {
            return false;
        }
        let mut ends = self.entries.iter().filter(|entry| entry.role == Role::End).peekable();
        ends.peek().is_none()
            || ends.any(|entry| Identity::at(entry.dir.as_fd(), &entry.name).is_some())
    }

    fn is_named_directory(&self) -> bool {
        !self.entries.is_empty() && self.object.as_ref().is_some_and(|object| object.is_dir)
    }

    /// Returns whether a name is the tree's own, or a direct link to it.
    fn ends_at(&self, dir: Identity, name: &OsStr) -> bool {
        self.entries.iter().any(|entry| entry.role == Role::End && entry.is(dir, name))
    }

    /// Returns the starting directories for walks up from the tree and from each link to it.
    fn starts(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let own = self
            .object
            .iter()
            .filter(|object| object.is_dir)
            .map(|Object { handle, .. }| handle.as_fd());
        own.chain(self.entries.iter().map(|entry| entry.dir.as_fd()))
    }
}
