//! The one directory that a call may see, opened once as a handle and never resolved by path again.

pub(crate) mod advice;
mod commands;
mod file_state;
mod files;
mod names;
pub(crate) mod private;
mod resolve;
mod subdirectory;
#[cfg(test)]
mod tests;

pub use commands::Commands;
pub(crate) use file_state::FileStamp;
pub use file_state::FileState;
pub use files::{FileError, MAX_ENTRIES, MAX_FILE_BYTES, WorkspaceFiles};
use palisade_wasi_fs::Mount;
pub use palisade_wasi_fs::internal::LastLink;
pub(crate) use palisade_wasi_fs::internal::{
    Admission, Forbidden, Identity, Inspected, Mounts, Opener, QUIETLY, READ_DIRECTORY, Standing,
    is_temporary, is_the_kernels, open_regular, open_regular_at,
};
pub use palisade_wasi_fs::{HardLinks, PathRuleError, PathRules};
pub(crate) use palisade_wasi_fs::{
    ProtectedPaths, ProtectedTree, Protection, Quotas, Reading, SharedQuotas,
};
pub(crate) use private::{Missing, Obstacle, open_private};
pub(crate) use resolve::PATH_PER_STEP;
pub use resolve::PathRefused;
pub(crate) use subdirectory::not_opened;
pub use subdirectory::{InvalidSubdirectory, Subdirectory};

use crate::tool::FileAccess;
use crate::tool::budget::{Budget, Exhausted, Unlimited};
use arc_swap::ArcSwap;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Runs blocking file system work on a thread of its own. The thread is abandoned if it does not
/// finish in time.
///
/// # Errors
///
/// `TimedOut` if the work does not finish in time; any error of starting a thread; `Other` if the
/// work panics.
pub fn within<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (send, done) = std::sync::mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("palisade-open".to_owned())
        .spawn(move || send.send(work()))?;
    done.recv_timeout(time).map_err(|error| match error {
        RecvTimeoutError::Timeout => {
            let time = humantime::format_duration(time);
            let why = format!("its file system has not answered for {time}");
            io::Error::new(io::ErrorKind::TimedOut, why)
        }
        RecvTimeoutError::Disconnected => io::Error::other("opening it failed inside the host"),
    })
}

/// An opened workspace directory. All access goes through its handle, so replacing the path later
/// has no effect.
pub struct Workspace {
    root: PathBuf,
    /// The absolute paths by which it was opened, the real one first.
    names: Vec<PathBuf>,
    dir: Dir,
    mount: OnceLock<Mount>,
    rules: Arc<ArcSwap<ProtectedPaths>>,
    /// Its subdirectories that are the workspaces of plugins.
    below: subdirectory::Opened,
    /// The place of a subdirectory in the workspace around it.
    around: Option<subdirectory::Around>,
}

impl Workspace {
    /// Opens a directory.
    ///
    /// # Errors
    ///
    /// [`WorkspaceError`] if the path does not exist, is not a directory, or is not readable.
    pub fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let fail = |source| WorkspaceError { path: path.to_owned(), source };
        let root = path.canonicalize().map_err(fail)?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority()).map_err(fail)?;
        let rules = ProtectedPaths::new(&dir, &root).map_err(fail)?;
        let names = names::names(path, &root);
        let rules = Arc::new(ArcSwap::from_pointee(rules));
        let (mount, below) = (OnceLock::new(), subdirectory::Opened::default());
        Ok(Self { root, names, dir, mount, rules, below, around: None })
    }

    /// Opens a directory that may hang in the kernel, as [`open`](Self::open). The open runs on a
    /// thread of its own, which is abandoned if it does not finish in time.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and a timeout ([`is_unanswered`](WorkspaceError::is_unanswered)).
    pub fn open_within(path: PathBuf, time: Duration) -> Result<Self, WorkspaceError> {
        let own = path.clone();
        within(time, move || Self::open(&own))
            .unwrap_or_else(|source| Err(WorkspaceError { path, source }))
    }

    /// Returns the absolute path, for messages and native tools. Guests never learn it.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the device and inode of the directory, which do not depend on its path.
    pub(crate) fn identity(&self) -> Identity {
        self.rules.load().root()
    }

    /// Returns the directory handle.
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Checks a path argument and returns it relative to the workspace. An absolute path may begin
    /// with the real path of the workspace, or with the path by which it was opened.
    ///
    /// # Errors
    ///
    /// [`PathRefused`] if the path leads out or is not a valid path.
    pub fn resolve(&self, path: &str, last: LastLink) -> Result<String, PathRefused> {
        resolve::resolve(&self.dir, &self.names, path, last, &Unlimited)
            .unwrap_or_else(|_| Err(resolve::escapes(path)))
    }

    /// Checks a path as [`resolve`](Self::resolve), within a budget.
    pub(crate) fn resolve_within(
        &self,
        path: &str,
        last: LastLink,
        budget: &dyn Budget,
    ) -> Result<Result<String, PathRefused>, Exhausted> {
        resolve::resolve(&self.dir, &self.names, path, last, budget)
    }

    /// Returns the real place of a resolved path, relative to the workspace, or `None` if it is not
    /// UTF-8. Its last names need not exist.
    pub(crate) fn place_of(
        &self,
        path: &str,
        last: LastLink,
        budget: &dyn Budget,
    ) -> Result<Option<String>, Exhausted> {
        resolve::place_of(&self.dir, path, last, budget)
    }

    /// Returns true if a regular file has several hard links.
    pub(crate) fn has_several_links(&self, path: &str) -> bool {
        self.dir.symlink_metadata(path).is_ok_and(|file| file.is_file() && file.nlink() > 1)
    }

    /// Returns the state of the file at a real place; of a link, its own.
    pub(crate) fn state_of(&self, place: &str) -> FileState {
        self.dir.symlink_metadata(place).map_or(FileState::MISSING, |file| FileState::of(&file))
    }

    /// Returns the file API of the workspace, for reading and writing. A tool uses
    /// [`ToolContext::files`](crate::ToolContext::files) instead, which also obeys its class.
    #[must_use]
    pub fn files(&self) -> WorkspaceFiles<'_> {
        self.files_for(FileAccess::ReadWrite)
    }

    /// Returns the file API with the access of a tool's class.
    pub(crate) fn files_for(&self, access: FileAccess) -> WorkspaceFiles<'_> {
        WorkspaceFiles::new(self, access)
    }

    /// Returns the rules of the workspace.
    pub(crate) fn rules(&self) -> Arc<ProtectedPaths> {
        self.rules.load_full()
    }

    /// Returns whether an open directory is the workspace or lies in it.
    ///
    /// # Errors
    ///
    /// If the system cannot tell.
    #[cfg(unix)]
    #[doc(hidden)]
    pub fn lies_inside(&self, dir: std::os::fd::BorrowedFd<'_>) -> io::Result<bool> {
        self.rules.load().lies_inside(dir)
    }

    /// Adds the rules of a host before its first tool runs here. From then on they apply to the
    /// tools of every host.
    pub(crate) fn keep_rules_of(&self, host: &Arc<Protection>) {
        if self.rules.load().include(host) {
            return;
        }
        self.rules.rcu(|rules| {
            if rules.include(host) { rules.clone() } else { Arc::new(rules.with(host, &self.root)) }
        });
    }

    /// Returns true if tools may reach a tree: it, or a link to it, lies in this workspace, or
    /// something is mounted here.
    pub(crate) fn reaches(&self, tree: &ProtectedTree, mounts: &Mounts<'_>) -> bool {
        self.rules.load().reaches(tree, mounts)
    }

    /// Returns whether anything is mounted here, for many trees.
    pub(crate) fn mounts(&self) -> Mounts<'_> {
        Mounts::below(&self.root)
    }

    /// Returns the directory as guests see it, created on first use.
    pub(crate) fn mount(&self) -> io::Result<&Mount> {
        if let Some(mount) = self.mount.get() {
            return Ok(mount);
        }
        // Racy by design: if two threads create one, the first one stored wins.
        let made = Mount::new(&self.dir)?;
        Ok(self.mount.get_or_init(|| made))
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).finish_non_exhaustive()
    }
}

/// The error of opening a workspace.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace `{}`: {source}", path.display())]
pub struct WorkspaceError {
    path: PathBuf,
    source: io::Error,
}

impl WorkspaceError {
    /// Returns whether the file system did not answer in time.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.source.kind() == io::ErrorKind::TimedOut
    }
}
