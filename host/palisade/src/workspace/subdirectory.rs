//! A subdirectory of a workspace as the workspace of one plugin: the directory at this path,
//! reached without links, under the rules of the workspace around it.

use super::{Forbidden, ProtectedPaths, READ_DIRECTORY, Workspace};
use crate::tool::text::first_deceptive;
use crate::tool::{ErrorKind, PermissionReason};
use arc_swap::ArcSwap;
use cap_std::fs::Dir;
use palisade_wasi_fs::internal::{Identity, PIN};
use rustix::fs::{Mode, OFlags, openat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The longest path of a subdirectory, in bytes.
const MAX_PATH: usize = 1_024;

/// The path of a subdirectory, relative to the workspace: names separated by single slashes,
/// without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subdirectory(Arc<str>);

/// A path that names no subdirectory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no directory of the workspace: names separated by single slashes are accepted, such as `notes/public`, without `.`, `..` and hidden characters, of at most 1024 bytes"
)]
pub struct InvalidSubdirectory(String);

impl Subdirectory {
    /// Checks a path.
    ///
    /// # Errors
    ///
    /// [`InvalidSubdirectory`] if the path is absolute, longer than 1,024 bytes, or has an empty
    /// name, `.`, `..` or a character that hides something.
    pub fn parse(path: &str) -> Result<Self, InvalidSubdirectory> {
        let is_name = |name: &str| !matches!(name, "" | "." | "..");
        let is_visible = first_deceptive(path).is_none() && !path.contains(['\n', '\t']);
        match path.len() <= MAX_PATH && is_visible && path.split('/').all(is_name) {
            true => Ok(Self(path.into())),
            false => Err(InvalidSubdirectory(crate::tool::text::elided(path, 128))),
        }
    }

    /// Returns the path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subdirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The reason why a subdirectory cannot be used. The message does not tell what lies behind a link.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotOpened {
    /// It, or a directory on the way, cannot be opened without following a link.
    #[error(
        "the directory `{0}` of the workspace, which is all that the tool sees of it, cannot be opened: {1}"
    )]
    Io(Subdirectory, io::Error),
    /// It lies in a protected tree.
    #[error(
        "the directory `{0}` of the workspace, which is all that the tool sees of it, is closed to tools: {1}"
    )]
    Forbidden(Subdirectory, Forbidden),
}

/// Returns the refusal of a call whose subdirectory cannot be used.
pub(crate) fn not_opened(why: &NotOpened) -> ErrorKind {
    ErrorKind::denied(PermissionReason::Workspace, why.to_string())
}

/// The subdirectories of a workspace that are open.
#[derive(Default)]
pub(super) struct Opened(Mutex<BTreeMap<Subdirectory, Arc<Workspace>>>);

/// The place of a subdirectory in the workspace around it.
pub(super) struct Around {
    path: Subdirectory,
    /// The rules of the workspace around it, which others may add to.
    rules: Arc<ArcSwap<ProtectedPaths>>,
    /// Those of them that the rules of the subdirectory were made from.
    included: Mutex<Arc<ProtectedPaths>>,
}

impl Workspace {
    /// Returns the subdirectory at this path. It is kept open, and opened again once another
    /// directory is there. It accesses files and may take long.
    ///
    /// # Errors
    ///
    /// [`NotOpened`] if it does not exist, is no directory, lies behind a link, or is protected
    /// from tools. The next call tries it again.
    pub(crate) fn below(&self, path: &Subdirectory) -> Result<Arc<Self>, NotOpened> {
        let failed = |error| NotOpened::Io(path.clone(), told(error));
        let dir = walk(&self.dir, path).map_err(failed)?;
        let now = Identity::from_handle(&dir).map_err(failed)?;
        let known = {
            let opened = self.below.0.lock().unwrap_or_else(PoisonError::into_inner);
            opened.get(path).filter(|known| known.rules().root() == now).cloned()
        };
        if let Some(known) = known {
            known.update_rules()?;
            return Ok(known);
        }
        let made = Arc::new(self.with_below(path, dir)?);
        let mut opened = self.below.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(path.clone(), made.clone());
        Ok(made)
    }

    fn with_below(&self, path: &Subdirectory, dir: Dir) -> Result<Self, NotOpened> {
        let root = self.root.join(path.as_str());
        let included = self.rules();
        let rules = rules_below(&included, &dir, &root, path)?;
        let around = Around {
            path: path.clone(),
            rules: self.rules.clone(),
            included: Mutex::new(included),
        };
        Ok(Self {
            names: self.names.iter().map(|name| name.join(path.as_str())).collect(),
            root,
            dir,
            mount: OnceLock::new(),
            rules: Arc::new(ArcSwap::from_pointee(rules)),
            below: Opened::default(),
            around: Some(around),
        })
    }

    /// Includes the rules that the workspace around a subdirectory has got since.
    ///
    /// # Errors
    ///
    /// [`NotOpened`] if they close the subdirectory to tools.
    pub(crate) fn update_rules(&self) -> Result<(), NotOpened> {
        let Some(around) = &self.around else { return Ok(()) };
        let mut included = around.included.lock().unwrap_or_else(PoisonError::into_inner);
        let now = around.rules.load_full();
        if !Arc::ptr_eq(&included, &now) {
            let rules = rules_below(&now, &self.dir, &self.root, &around.path)?;
            self.rules.store(Arc::new(rules));
            *included = now;
        }
        Ok(())
    }

    /// Returns a path of this workspace relative to the whole one, of which it may be a
    /// subdirectory.
    pub(crate) fn in_whole(&self, path: String) -> String {
        match &self.around {
            None => path,
            Some(around) if path.is_empty() || path == "." => around.path.to_string(),
            Some(around) => format!("{}/{path}", around.path),
        }
    }
}

/// Returns an error with the accepted form, where the system's words do not tell it.
fn told(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "it does not exist; create it"),
        io::ErrorKind::NotADirectory => io::Error::new(
            error.kind(),
            "it is no directory, or lies behind a link; a directory on a path without links is accepted",
        ),
        _ => error,
    }
}

/// Opens a directory beneath another one, name by name, without following a link.
fn walk(root: &Dir, path: &Subdirectory) -> io::Result<Dir> {
    let mut held: Option<OwnedFd> = None;
    for part in Path::new(path.as_str()).components() {
        let Component::Normal(name) = part else { return Err(io::ErrorKind::NotFound.into()) };
        let from = held.as_ref().map_or(root.as_fd(), OwnedFd::as_fd);
        held = Some(openat(from, name, PIN | OFlags::NOFOLLOW, Mode::empty())?);
    }
    let pinned = held.ok_or(io::ErrorKind::NotFound)?;
    let dir = openat(&pinned, ".", READ_DIRECTORY, Mode::empty())?;
    Ok(Dir::from_std_file(dir.into()))
}

/// Returns the rules of an open subdirectory, unless those around it close it.
fn rules_below(
    around: &ProtectedPaths,
    dir: &Dir,
    root: &Path,
    path: &Subdirectory,
) -> Result<ProtectedPaths, NotOpened> {
    let refuse = |why| match why {
        Forbidden::Unknown(error) => NotOpened::Io(path.clone(), error),
        why => NotOpened::Forbidden(path.clone(), why),
    };
    around.check_names(path.as_str()).map_err(refuse)?;
    around.check_dir(dir.as_fd()).map_err(refuse)?;
    around.check_readable(dir.as_fd(), OsStr::new(".")).map_err(refuse)?;
    let rules = around.below(dir, root, path.as_str());
    rules.map_err(|error| NotOpened::Io(path.clone(), error))
}

#[cfg(test)]
mod tests;
