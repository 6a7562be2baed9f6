//! Path resolution component by component, for symbolic links and for systems without `openat2`.
//!
//! Each component is opened relative to its predecessor's handle, without following links. Links
//! are read and their targets walked in turn. `..` reopens the names walked so far and never asks
//! the kernel for a parent. The walk therefore cannot leave its starting directory, and it knows
//! the real name of its destination.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::locate::{Follow, Located, Pinned};
use super::mount::OpenDir;
use crate::errors::{Fault, Refusal};
use crate::path::{self, GuestPath, HERE};
use crate::path_rules::Standing;
use crate::planted_link::may_be_planted;
use crate::protected_paths::names::shown;
use crate::protected_paths::{PIN, ProtectedPaths};
use crate::usage::Usage;

/// The maximum number of symbolic links in one resolution, the same as on Linux.
const MAX_LINKS: u32 = 40;

/// The maximum number of directories that one walk opens: twice the number of components of the
/// longest path, so that only paths made to be slow are refused.
const MAX_STEPS: u32 = 4_096;

/// Locates a path by walking it. Under path rules each name is judged before it is looked up, so
/// that the answer does not depend on the existence of a denied path.
pub(super) fn walk<'a>(
    dir: &'a OpenDir,
    path: &GuestPath<'a>,
    follow: Follow,
    usage: &'a Usage,
) -> Result<Located<'a>, Fault> {
    let mut walk = Walk::new(dir, usage)?;
    let mut name = Cow::Borrowed(path.name);
    let mut slash = path.slash;
    walk.descend(path.parent)?;
    while follow == Follow::Yes && name != HERE {
        walk.judge(&name)?;
        let Some(target) = walk.read_link(&name)? else { break };
        let target_path = GuestPath::parse(&target)?;
        walk.descend(target_path.parent)?;
        slash |= target_path.slash;
        name = Cow::Owned(target_path.name.to_owned());
    }
    walk.end(name, slash)
}

/// A walk in progress: the current directory and the way to it.
struct Walk<'a> {
    start: &'a OpenDir,
    here: Option<OwnedFd>,
    /// The real names walked, relative to `start`.
    way: String,
    links: u32,
    steps: u32,
    filter: Option<Filter<'a>>,
}

/// The path rules of a walk.
struct Filter<'a> {
    rules: &'a ProtectedPaths,
    /// The present place of the start, relative to the mount.
    start: String,
}

impl<'a> Walk<'a> {
    fn new(start: &'a OpenDir, usage: &'a Usage) -> Result<Self, Fault> {
        let filter = match usage.filter() {
            None => None,
            Some(rules) => Some(Filter { rules, start: place_of(start, rules)? }),
        };
        Ok(Self { start, here: None, way: String::new(), links: 0, steps: 0, filter })
    }

    /// Refuses a name in the current directory that the path rules deny.
    fn judge(&self, name: &str) -> Result<(), Fault> {
        let Some(filter) = &self.filter else { return Ok(()) };
        let real = path::join(&path::join(&filter.start, &self.way), name);
        match filter.rules.standing_of(&real) {
            Standing::Denied => Err(self.excluded(name)),
            Standing::Way | Standing::Permitted => Ok(()),
        }
    }

    /// Returns the refusal of a name in the current directory. It shows the names that the guest
    /// knows, and not those of a directory that was moved.
    fn excluded(&self, name: &str) -> Fault {
        let known = path::join(&path::join(self.start.name(), &self.way), name);
        Refusal::Excluded(shown(&known).into()).into()
    }

    /// Walks all components of a path. Each must be a directory or a link to one.
    fn descend(&mut self, path: &str) -> Result<(), Fault> {
        let mut pending: Vec<Cow<'_, str>> = path.rsplit('/').map(Cow::Borrowed).collect();
        while let Some(part) = pending.pop() {
            match &*part {
                "" | "." => {}
                ".." => self.go_back()?,
                name => {
                    if !self.enter(name)? {
                        let target = self.read_link(name)?.ok_or_else(|| self.no_directory())?;
                        let target = GuestPath::parse(&target)?;
                        pending.extend(
                            target.whole.rsplit('/').map(|part| Cow::Owned(part.to_owned())),
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Enters a directory. Returns false if the name is not a directory.
    fn enter(&mut self, name: &str) -> Result<bool, Fault> {
        self.steps = self.steps.saturating_add(1);
        if self.steps > MAX_STEPS {
            return Err(ErrorCode::NameTooLong.into());
        }
        self.judge(name)?;
        match openat(self.handle(), name, PIN | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(handle) => {
                self.here = Some(handle);
                path::append(&mut self.way, name);
                Ok(true)
            }
            // Systems differ in the error for a symbolic link.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns the error of a name that is no directory. Under path rules it tells nothing about a
    /// file that only a directory may stand for.
    fn no_directory(&self) -> ErrorCode {
        if self.filter.is_some() { ErrorCode::NoEntry } else { ErrorCode::NotDirectory }
    }

    fn go_back(&mut self) -> Result<(), Fault> {
        if self.way.is_empty() {
            return Err(Refusal::Escape.into());
        }
        path::pop(&mut self.way);
        let way = std::mem::take(&mut self.way);
        self.here = None;
        for name in way.split('/').filter(|name| !name.is_empty()) {
            if !self.enter(name)? {
                // It was a directory a moment ago: the tree is being changed concurrently.
                return Err(ErrorCode::NoEntry.into());
            }
        }
        Ok(())
    }

    /// Returns the target of a name, or none if it is not a symbolic link.
    fn read_link(&mut self, name: &str) -> Result<Option<String>, Fault> {
        let target = match readlinkat(self.handle(), name, Vec::new()) {
            Ok(target) => target,
            Err(Errno::INVAL | Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        if may_be_planted(self.handle(), OsStr::new(name))? {
            return Err(ErrorCode::Access.into());
        }
        self.links = self.links.saturating_add(1);
        if self.links > MAX_LINKS {
            return Err(ErrorCode::Loop.into());
        }
        target.into_string().map(Some).map_err(|_| ErrorCode::IllegalByteSequence.into())
    }

    fn handle(&self) -> BorrowedFd<'_> {
        match &self.here {
            Some(handle) => handle.as_fd(),
            None => self.start.handle(),
        }
    }

    /// Ends the walk. The present place of the directory decides: it may have been moved.
    fn end(self, name: Cow<'a, str>, slash: bool) -> Result<Located<'a>, Fault> {
        let standing = match &self.filter {
            None => Standing::Permitted,
            Some(filter) => filter.rules.standing_at(self.handle(), OsStr::new(&*name))?,
        };
        if standing == Standing::Denied {
            return Err(self.excluded(&name));
        }
        let base = Cow::Owned(path::join(self.start.name(), &self.way));
        let parent = match self.here {
            Some(handle) => Pinned::Opened(handle),
            None => Pinned::Borrowed(self.start),
        };
        Ok(Located { parent, name, slash, base, way: "", standing })
    }
}

/// Returns the present place of a directory of the guest.
fn place_of(dir: &OpenDir, rules: &ProtectedPaths) -> Result<String, Fault> {
    let refused = || Refusal::Excluded(shown(dir.name()).into());
    Ok(rules.place(dir.handle())?.ok_or_else(refused)?)
}
