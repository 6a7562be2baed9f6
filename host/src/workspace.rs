//! The one directory that a call may see: opened once, as a handle, and never by its path again.

mod files;
mod regular;
mod resolve;
mod rules;
#[cfg(unix)]
mod seen;

pub use files::{FileError, MAX_ENTRIES, MAX_FILE_BYTES, WorkspaceFiles};
pub(crate) use regular::open_regular;
pub use resolve::{LastLink, PathRefused};
pub use rules::HardLinks;
#[cfg(target_os = "linux")]
pub(crate) use rules::PIN_ANY;
#[cfg(any(not(unix), test))]
pub(crate) use rules::Part;
#[cfg(unix)]
pub(crate) use rules::{Admission, Identity, PIN};
pub(crate) use rules::{Forbidden, HostRules, Reading, Rules, Tree};
#[cfg(unix)]
pub(crate) use seen::{Opener, QUIETLY, READ_DIRECTORY, Seen};

use crate::tool::FileAccess;
use crate::tool::budget::{Budget, Exhausted, Unlimited};
use arc_swap::ArcSwap;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Does what may hang in the kernel on a thread of its own, which is left to itself where it does not come back in time.
///
/// # Errors
///
/// `TimedOut` where it does not; whatever keeps a thread from starting.
pub(crate) fn within<T: Send + 'static>(time: Duration, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (send, done) = std::sync::mpsc::sync_channel(1);
    std::thread::Builder::new().name("palisade-open".to_owned()).spawn(move || send.send(work()))?;
    done.recv_timeout(time).map_err(|_| {
        let why = format!("its file system has not answered for {}", humantime::format_duration(time));
        io::Error::new(io::ErrorKind::TimedOut, why)
    })
}

/// An opened workspace. Everything below it is reached through the handle, so that a later swap of the path changes nothing.
pub struct Workspace {
    root: PathBuf,
    dir: Dir,
    mount: OnceLock<Arc<dyn Any + Send + Sync>>,
    rules: ArcSwap<Rules>,
}

impl Workspace {
    /// Opens a directory.
    ///
    /// # Errors
    ///
    /// [`WorkspaceError`] where it does not exist, is not a directory, or may not be read.
    pub fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let fail = |source| WorkspaceError { path: path.to_owned(), source };
        let root = path.canonicalize().map_err(fail)?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority()).map_err(fail)?;
        let rules = Rules::new(&dir, &root).map_err(fail)?;
        Ok(Self { root, dir, mount: OnceLock::new(), rules: ArcSwap::from_pointee(rules) })
    }

    /// As [`open`](Self::open), for a directory that may hang in the kernel: on a thread of its own, which is left to itself where it does not come back in time.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and where nothing has come back within this time ([`is_unanswered`](WorkspaceError::is_unanswered)).
    pub fn open_within(path: PathBuf, time: Duration) -> Result<Self, WorkspaceError> {
        let own = path.clone();
        within(time, move || Self::open(&own)).unwrap_or_else(|source| Err(WorkspaceError { path, source }))
    }

    /// Its absolute path, for people and for native tools. Guests never learn it.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Which directory it is, whatever leads to it.
    #[cfg(unix)]
    pub(crate) fn identity(&self) -> Identity {
        self.rules.load().root()
    }

    /// Its handle.
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Checks a path argument and gives it back relative to the workspace.
    ///
    /// # Errors
    ///
    /// [`PathRefused`] where it leads out, or cannot be a path at all.
    pub fn resolve(&self, path: &str, last: LastLink) -> Result<String, PathRefused> {
        resolve::resolve(&self.dir, &self.root, path, last, &Unlimited).unwrap_or_else(|_| Err(resolve::escapes(path)))
    }

    /// As [`resolve`](Self::resolve), for as long as the budget allows.
    pub(crate) fn resolve_within(
        &self,
        path: &str,
        last: LastLink,
        budget: &dyn Budget,
    ) -> Result<Result<String, PathRefused>, Exhausted> {
        resolve::resolve(&self.dir, &self.root, path, last, budget)
    }

    /// Its files, to be read and changed. A tool takes those of its [`ToolContext`](crate::ToolContext::files), which obey its class.
    #[must_use]
    pub fn files(&self) -> WorkspaceFiles<'_> {
        self.files_for(FileAccess::ReadWrite)
    }

    /// Its files, as far as a class of side effects gives them to a tool.
    pub(crate) fn files_for(&self, access: FileAccess) -> WorkspaceFiles<'_> {
        WorkspaceFiles::new(self, access)
    }

    /// What holds in it besides its border.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Adds the rules of a host whose tools work here, before the first of them runs. They hold from then on, for the tools of every host.
    pub(crate) fn keep_rules_of(&self, host: &Arc<HostRules>) {
        if self.rules.load().include(host) {
            return;
        }
        self.rules
            .rcu(|rules| if rules.include(host) { rules.clone() } else { Arc::new(rules.with(host, &self.root)) });
    }

    /// Whether a tree lies in this workspace, or a link to it, or is the workspace.
    pub(crate) fn holds(&self, tree: &Tree) -> bool {
        self.rules.load().holds(tree)
    }

    /// What the sandbox keeps for this workspace, made at first use: its own form of the handle.
    pub(crate) fn mount<T: Any + Send + Sync>(&self, make: impl FnOnce(&Dir) -> io::Result<T>) -> io::Result<Arc<T>> {
        let mount = match self.mount.get() {
            Some(mount) => mount.clone(),
            None => {
                let made: Arc<dyn Any + Send + Sync> = Arc::new(make(&self.dir)?);
                self.mount.get_or_init(|| made).clone()
            }
        };
        mount.downcast().map_err(|_| io::Error::other("another kind of sandbox mounted this workspace"))
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).finish_non_exhaustive()
    }
}

/// A workspace that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace `{}`: {source}; give an existing directory with --workspace", path.display())]
pub struct WorkspaceError {
    path: PathBuf,
    source: io::Error,
}

impl WorkspaceError {
    /// Whether the file system did not answer in time.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.source.kind() == io::ErrorKind::TimedOut
    }
}
