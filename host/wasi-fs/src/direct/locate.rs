//! Resolves a guest's path to a pinned directory and a single name in it.
//!
//! Every operation on a path goes through [`locate`] or [`look`] and then acts on the single name
//! without following it. Concurrent changes to the tree therefore cannot lead an operation out of
//! it: a TOCTOU race ends either in a refusal or at a place inside the mount.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Stat, statat};
#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, PathFlags};

use super::kernel;
use super::mount::{OpenDir, Resolver};
use super::walk::walk;
use crate::errors::{Fault, Refusal};
use crate::path::{self, GuestPath, HERE};
use crate::path_rules::Standing;
#[cfg(target_os = "linux")]
use crate::protected_paths::PIN;
use crate::protected_paths::names::shown;
use crate::protected_paths::{Admission, Identity};
use crate::usage::Usage;

/// The treatment of a symbolic link in the last component. Links in earlier components are always
/// followed, as long as they stay inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    /// Operate on the target of the link.
    Yes,
    /// Operate on the link itself.
    No,
}

impl From<PathFlags> for Follow {
    fn from(flags: PathFlags) -> Self {
        if flags.contains(PathFlags::SYMLINK_FOLLOW) { Self::Yes } else { Self::No }
    }
}

/// A place in the mount: a directory that is held open, and a name in it that need not exist.
pub(super) struct Located<'a> {
    pub(super) parent: Pinned<'a>,
    /// One component without slashes, or `.` for the pinned directory itself.
    pub(super) name: Cow<'a, str>,
    /// Whether the path had a trailing slash, and so must name a directory.
    pub(super) slash: bool,
    /// The real name of the directory where resolution began. `way` leads from there to the parent
    /// and holds no symbolic links.
    pub(super) base: Cow<'a, str>,
    pub(super) way: &'a str,
    /// The judgement of the path rules, which is never a denial.
    pub(super) standing: Standing,
}

impl Located<'_> {
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        match &self.parent {
            Pinned::Borrowed(dir) => dir.handle(),
            Pinned::Opened(handle) => handle.as_fd(),
        }
    }

    /// Returns whether the path ended in `.` or `..`. Such a directory cannot be created, removed
    /// or replaced.
    pub(super) fn is_here(&self) -> bool {
        self.name == HERE
    }

    /// Returns the resolved path, relative to the mount.
    pub(super) fn real_name(&self) -> String {
        let mut name = path::join(&self.base, self.way);
        path::append(&mut name, &self.name);
        name
    }

    /// Refuses to create, change or remove the entry if it is a protected tree or lies in one.
    /// Returns its depth in the workspace. The depth is counted through the handle, since a
    /// directory that a guest holds open may have been moved since it was named.
    pub(super) fn check_change(&self, usage: &Usage) -> Result<u64, Fault> {
        if self.standing != Standing::Permitted {
            self.check_standing(self.stat()?.as_ref())?;
        }
        self.check_protected(usage)
    }

    /// Does the same for a new directory, which may be one on the way to a permitted path.
    pub(super) fn check_protected(&self, usage: &Usage) -> Result<u64, Fault> {
        let rules = usage.protected()?;
        rules.check_names(&self.real_name())?;
        // A directory in `cgroup` is a control group.
        kernel::check_directory(self.handle())?;
        Ok(if self.is_here() {
            rules.check_dir(self.handle())?
        } else {
            rules.check_entry(self.handle(), OsStr::new(&*self.name))?
        })
    }

    /// Refuses the entry if the path rules permit only a directory there, and it is none. A missing
    /// entry is refused alike.
    pub(super) fn check_standing(&self, found: Option<&Stat>) -> Result<(), Fault> {
        self.check_as(self.standing, found)
    }

    fn check_as(&self, standing: Standing, found: Option<&Stat>) -> Result<(), Fault> {
        match standing {
            Standing::Permitted => Ok(()),
            Standing::Way if found.is_some_and(is_directory) => Ok(()),
            Standing::Way | Standing::Denied => {
                Err(Refusal::Excluded(shown(&self.real_name()).into()).into())
            }
        }
    }

    /// Judges the entry again after it was opened, and returns whether it still has its name. A
    /// directory that other programs move back and forth may have been at a denied place when the
    /// entry was opened. If the entry has its name after the directory was judged, it was in the
    /// directory then as well.
    pub(super) fn still_permits(&self, opened: &Stat, usage: &Usage) -> Result<bool, Fault> {
        let Some(rules) = usage.filter() else { return Ok(true) };
        let standing = rules.standing_at(self.handle(), OsStr::new(&*self.name))?;
        self.check_as(standing, Some(opened))?;
        let same = |stat: &Stat| Identity::from_stat(stat) == Identity::from_stat(opened);
        Ok(self.stat()?.as_ref().is_some_and(same))
    }

    /// Reserves the name in the directory. The caller keeps the admission until the entry is
    /// created.
    pub(super) fn admit(&self, usage: &Usage) -> Result<Admission, Fault> {
        Ok(usage.protected()?.admit(self.handle(), OsStr::new(&*self.name))?)
    }

    /// Returns the metadata of the entry, or none if it does not exist. Never follows a link.
    pub(super) fn stat(&self) -> Result<Option<Stat>, Fault> {
        match statat(self.handle(), &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// The directory of a [`Located`].
pub(super) enum Pinned<'a> {
    /// The directory that the guest named.
    Borrowed(&'a OpenDir),
    /// A directory that was opened for this operation.
    Opened(OwnedFd),
}

/// Locates a path without following its last component.
pub(super) fn locate<'a>(
    dir: &'a OpenDir,
    path: &GuestPath<'a>,
    usage: &'a Usage,
) -> Result<Located<'a>, Fault> {
    if usage.filter().is_some() {
        return walk(dir, path, Follow::No, usage);
    }
    match dir.resolver() {
        #[cfg(target_os = "linux")]
        Resolver::Kernel => match pin(dir, path.parent) {
            Ok(parent) => Ok(plainly(dir, path, parent)),
            Err(Stopped::Symlink) => walk(dir, path, Follow::No, usage),
            Err(stopped) => Err(stopped.into()),
        },
        Resolver::Walk => walk(dir, path, Follow::No, usage),
    }
}

/// Locates a path and returns the metadata of its entry. If `follow` asks for it, the last
/// component is not a symbolic link afterwards.
pub(super) fn look<'a>(
    dir: &'a OpenDir,
    path: &GuestPath<'a>,
    follow: Follow,
    usage: &'a Usage,
) -> Result<(Located<'a>, Option<Stat>), Fault> {
    // Most entries are no links, and the kernel resolver is faster than the walk.
    let (mut place, mut found) = look_once(dir, path, Follow::No, usage)?;
    if found.is_some_and(|stat| is_symlink(&stat)) && (follow == Follow::Yes || path.slash) {
        (place, found) = look_once(dir, path, Follow::Yes, usage)?;
        if found.is_some_and(|stat| is_symlink(&stat)) {
            // A link again, although links were followed: the tree is being changed concurrently.
            return Err(ErrorCode::Loop.into());
        }
    }
    place.check_standing(found.as_ref())?;
    if place.slash && found.is_some_and(|stat| !is_directory(&stat)) {
        return Err(ErrorCode::NotDirectory.into());
    }
    Ok((place, found))
}

pub(super) fn is_symlink(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

pub(super) fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn look_once<'a>(
    dir: &'a OpenDir,
    path: &GuestPath<'a>,
    follow: Follow,
    usage: &'a Usage,
) -> Result<(Located<'a>, Option<Stat>), Fault> {
    let place = match follow {
        Follow::No => locate(dir, path, usage)?,
        Follow::Yes => walk(dir, path, Follow::Yes, usage)?,
    };
    let found = place.stat()?;
    Ok((place, found))
}

/// Returns the best resolver of this system, by trying `openat2` once.
#[cfg(target_os = "linux")]
pub(super) fn best_resolver(dir: BorrowedFd<'_>) -> Resolver {
    match openat2(dir, HERE, PIN, Mode::empty(), BENEATH) {
        Ok(_) => Resolver::Kernel,
        Err(_) => Resolver::Walk,
    }
}

/// Returns the walk, since this system has no `openat2`.
#[cfg(not(target_os = "linux"))]
pub(super) fn best_resolver(_dir: BorrowedFd<'_>) -> Resolver {
    Resolver::Walk
}

/// Resolution stays beneath the directory and rejects every symbolic link, so the components
/// traversed are exactly the components written.
#[cfg(target_os = "linux")]
pub(super) const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// The reason why `openat2` did not open a path.
#[cfg(target_os = "linux")]
pub(super) enum Stopped {
    /// A component is a symbolic link, or the tree keeps changing: resolve by walking instead.
    Symlink,
    /// The path leads out of the directory.
    Refused(Refusal),
    /// The system call failed.
    Errno(Errno),
}

#[cfg(target_os = "linux")]
impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Symlink => ErrorCode::Loop.into(),
            Stopped::Refused(refusal) => refusal.into(),
            Stopped::Errno(errno) => errno.into(),
        }
    }
}

/// Opens a path without symbolic links.
#[cfg(target_os = "linux")]
pub(super) fn open_beneath(dir: &OpenDir, path: &str, flags: OFlags) -> Result<OwnedFd, Stopped> {
    // The kernel returns EAGAIN if a concurrent rename makes `..` unsafe. wasmtime-wasi retries as
    // often.
    const ATTEMPTS: usize = 4;
    for _ in 0..ATTEMPTS {
        return match openat2(dir.handle(), path, flags, Mode::empty(), BENEATH) {
            Ok(handle) => Ok(handle),
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Err(Errno::LOOP) => Err(Stopped::Symlink),
            Err(Errno::XDEV) => Err(Stopped::Refused(Refusal::Escape)),
            Err(errno) => Err(Stopped::Errno(errno)),
        };
    }
    Err(Stopped::Symlink)
}

#[cfg(target_os = "linux")]
fn pin<'a>(dir: &'a OpenDir, path: &str) -> Result<Pinned<'a>, Stopped> {
    if path.is_empty() {
        return Ok(Pinned::Borrowed(dir));
    }
    open_beneath(dir, path, PIN).map(Pinned::Opened)
}

#[cfg(target_os = "linux")]
fn plainly<'a>(dir: &'a OpenDir, path: &GuestPath<'a>, parent: Pinned<'a>) -> Located<'a> {
    Located {
        parent,
        name: Cow::Borrowed(path.name),
        slash: path.slash,
        base: Cow::Borrowed(dir.name()),
        way: path.parent,
        standing: Standing::Permitted,
    }
}
