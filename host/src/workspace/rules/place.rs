//! The rules for a name in a directory that is held open, judged by what these really are and where they really lie.

use super::ascent::{Identity, ascend};
use super::tree::{Entry, Object};
use super::{Forbidden, Reading, Rules, Tree, names};
use rustix::fs::{AtFlags, FileType, statat};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};

/// The name that a repository has.
const GIT: &str = ".git";

impl Rules {
    /// Refuses to change the directory itself, or what lies in it.
    pub(crate) fn check_dir(&self, dir: BorrowedFd<'_>) -> Result<(), Forbidden> {
        ascend(dir, self.root, |here, above| {
            self.check_identity(here)?;
            let git = Identity::at(above, GIT);
            if git == Some(here) { Err(Forbidden::Protected(GIT.into())) } else { Ok(()) }
        })?;
        self.check_identity(self.root)
    }

    /// Refuses to make, change or remove a name in a directory.
    pub(crate) fn check_entry(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Forbidden> {
        self.check_names(&name.to_string_lossy())?;
        self.check_dir(dir)?;
        self.check_reserved(dir, name)?;
        let Some(found) = Identity::at(dir, name) else { return Ok(()) };
        self.check_identity(found)?;
        // Another form of the name, which this file system folds to the same.
        if Identity::at(dir, GIT) == Some(found) { Err(Forbidden::Protected(GIT.into())) } else { Ok(()) }
    }

    /// Refuses to move or remove a directory that has a protected tree below it: it would come to lie under a name where nobody looks for it, and another
    /// could be put into its place. A `.git` of that directory's own goes with it, and stays protected by its name.
    pub(crate) fn check_moved(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Forbidden> {
        if self.trees.is_empty() {
            return Ok(());
        }
        let Ok(stat) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Ok(());
        }
        let moved = Identity::from_stat(&stat);
        for (label, tree) in &self.trees {
            let Some(start) = tree.start() else { continue };
            let met =
                ascend(
                    start,
                    self.root,
                    |here, _| {
                        if here == moved { Err(Forbidden::Protected(label.clone())) } else { Ok(()) }
                    },
                );
            // A tree that has been moved out of the workspace since has nothing above it here.
            met.or_else(|met| if matches!(met, Forbidden::Outside) { Ok(()) } else { Err(met) })?;
        }
        Ok(())
    }

    /// Refuses to read a name in a directory, where that is the host's own.
    pub(crate) fn check_readable(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Forbidden> {
        if !self.hide_anything() {
            return Ok(());
        }
        self.check_hidden(self.root)?;
        ascend(dir, self.root, |here, _| self.check_hidden(here))?;
        Identity::at(dir, name).map_or(Ok(()), |found| self.check_hidden(found))
    }

    /// Refuses to change something that is open, where it is a protected tree by itself.
    pub(crate) fn check_identity(&self, identity: Identity) -> Result<(), Forbidden> {
        let met = self.trees.iter().find(|(_, tree)| tree.is(identity));
        met.map_or(Ok(()), |(label, _)| Err(Forbidden::Protected(label.clone())))
    }

    /// Whether a tree lies in this workspace, or is the workspace.
    pub(super) fn holds(&self, tree: &Tree) -> bool {
        tree.start().is_some_and(|start| ascend(start, self.root, |_, _| Ok(())).is_ok())
    }

    fn check_hidden(&self, identity: Identity) -> Result<(), Forbidden> {
        let mut hidden = self.trees.iter().filter(|(_, tree)| tree.reading() == Reading::Refused);
        let met = hidden.find(|(_, tree)| tree.is(identity));
        met.map_or(Ok(()), |(label, _)| Err(Forbidden::Hidden(label.clone())))
    }

    /// A name that is kept for a tree, in any letter case, whatever stands there now.
    fn check_reserved(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Forbidden> {
        if self.trees.iter().all(|(_, tree)| tree.entry.is_none()) {
            return Ok(());
        }
        let dir = Identity::of(dir)?;
        let is_kept = |entry: &Entry| entry.identity == dir && names::is_same(&entry.name, name);
        let met = self.trees.iter().find(|(_, tree)| tree.entry.as_ref().is_some_and(is_kept));
        met.map_or(Ok(()), |(label, _)| Err(Forbidden::Protected(label.clone())))
    }
}

impl Tree {
    fn is(&self, identity: Identity) -> bool {
        self.object.as_ref().is_some_and(|object| object.identity == identity)
    }

    /// Where the way up from the tree begins.
    fn start(&self) -> Option<BorrowedFd<'_>> {
        let own = self.object.as_ref().filter(|object| object.is_dir).map(|Object { handle, .. }| handle.as_fd());
        own.or_else(|| self.entry.as_ref().map(|entry| entry.dir.as_fd()))
    }
}
