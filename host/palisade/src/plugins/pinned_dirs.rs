//! The plugin locations at startup, and whether they have been replaced since.
//!
//! These locations were write-protected at startup. A replacement may be writable for tools, so a
//! plugin loaded from it could be one that a tool has written.

use super::sources::Sources;
use crate::workspace::HardLinks;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The plugin locations at startup.
pub(super) struct PinnedDirs {
    directories: HashMap<PathBuf, PinnedDir>,
    /// The real paths of the plugin files that were symlinks or had several hard links.
    linked: HashMap<PathBuf, PathBuf>,
    hard_links: HardLinks,
}

impl PinnedDirs {
    /// Records the current locations of these sources.
    pub(super) fn open(sources: &Sources, hard_links: HardLinks) -> Self {
        let directories = sources.directories.iter();
        let linked = sources
            .elsewhere()
            .into_iter()
            .filter_map(|file| Some((file.clone(), file.canonicalize().ok()?)));
        Self {
            directories: directories
                .filter_map(|path| Some((path.clone(), PinnedDir::open(path)?)))
                .collect(),
            linked: linked.collect(),
            hard_links,
        }
    }

    /// Returns an error if the directory has been replaced.
    pub(super) fn check_directory(&self, directory: &Path) -> Result<(), String> {
        directory.metadata().map_err(|error| format!("it cannot be read: {error}"))?;
        match self.directories.get(directory) {
            Some(pinned) if pinned.is_at(directory) => Ok(()),
            _ => {
                Err("the directory was replaced after startup, and tools may be able to write to it; restart to load \
                     from it"
                    .to_owned())
            }
        }
    }

    /// Returns an error if a tool could have written the content of this file.
    pub(super) fn check_file(&self, file: &Path) -> Result<(), String> {
        // Opening the file reports the error.
        let Ok(meta) = file.symlink_metadata() else { return Ok(()) };
        if meta.is_symlink() && !self.leads_to_pinned_dir(file) {
            // A dangling symlink included: a tool could create the target between this check and
            // the open.
            return Err(
                "it is a symbolic link to a missing file, or to a file that tools may be able to write; put a copy \
                 there, or restart"
                    .to_owned(),
            );
        }
        let is_open = match self.hard_links {
            HardLinks::Refuse => false,
            HardLinks::Allow => has_names(&meta) && !self.linked.contains_key(file),
        };
        if is_open {
            return Err("it has another name, under which tools may change it; put a copy there, or restart".to_owned());
        }
        Ok(())
    }

    /// Returns true if a symlink leads to its original target or into a plugin directory.
    fn leads_to_pinned_dir(&self, file: &Path) -> bool {
        let Ok(target) = file.canonicalize() else { return false };
        let is_pinned = |directory: &PathBuf| {
            directory.canonicalize().is_ok_and(|pinned| target.starts_with(pinned))
        };
        self.linked.get(file) == Some(&target) || self.directories.keys().any(is_pinned)
    }
}

fn has_names(meta: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(meta) > 1
}

/// A directory that is held open, so that its inode number is not reused.
struct PinnedDir(fs::File);

impl PinnedDir {
    fn open(path: &Path) -> Option<Self> {
        fs::File::open(path).ok().map(Self)
    }

    fn is_at(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let number = |meta: fs::Metadata| (meta.dev(), meta.ino());
        self.0
            .metadata()
            .is_ok_and(|held| path.metadata().is_ok_and(|now| number(held) == number(now)))
    }
}
