//! A private directory, resolved from handle to handle. Each directory on the path is checked while
//! it is held open, because its owner, and every user who may write to it, could replace the next
//! directory.

use super::{Missing, Obstacle};
use crate::workspace::{Identity as Node, LastLink, READ_DIRECTORY, Workspace, open_regular_at};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawMode, Stat, fstat, mkdirat, open, openat, readlinkat,
    statat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

#[cfg(test)]
mod tests;

/// The maximum number of symlinks on a path, as on Linux.
const MAX_LINKS: usize = 40;

/// The flags for opening a directory on the path. `PATH` needs no read permission on it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl From<Errno> for Obstacle {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// Opens the directory at `path`. Creates nothing inside the workspace. Also returns the resolved
/// path.
///
/// # Errors
///
/// [`Obstacle`] if another user can reach the directory, or can replace it or one of its parents. A
/// sticky directory owned by root, such as `/tmp`, is accepted as a parent.
pub(crate) fn open_private(
    path: &Path,
    missing: Missing,
    workspace: Option<&Workspace>,
) -> Result<(OwnedFd, PathBuf), Obstacle> {
    let mut walk = Walk::new(path, missing, workspace)?;
    while let Some(part) = walk.pending.pop() {
        walk.step(part)?;
    }
    walk.end()
}

/// Opens the regular file at `path`, through links of this user.
///
/// # Errors
///
/// [`Obstacle`] if the file is not regular, or if another user can replace it, one of its parents
/// or a link on the path.
pub(super) fn open_unreplaceable(path: &Path) -> Result<std::fs::File, Obstacle> {
    let mut walk = Walk::new(path, Missing::Refused, None)?;
    while let Some(part) = walk.pending.pop() {
        match part {
            Part::Name(name) if walk.pending.is_empty() => {
                if let Some(file) = walk.open_last(&name)? {
                    return Ok(file);
                }
            }
            part => walk.step(part)?,
        }
    }
    Err(Obstacle::Unsafe("it is a directory, and not a regular file".to_owned()))
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

struct Walk<'a> {
    /// The directories from the root to the current one, without symlinks.
    passed: Vec<Passed>,
    pending: Vec<Part>,
    links: usize,
    missing: Missing,
    workspace: Option<&'a Workspace>,
    me: u32,
}

struct Passed {
    handle: OwnedFd,
    stat: Stat,
    path: PathBuf,
}

enum Part {
    Root,
    Up,
    Name(OsString),
}

impl<'a> Walk<'a> {
    fn new(
        path: &Path,
        missing: Missing,
        workspace: Option<&'a Workspace>,
    ) -> Result<Self, Obstacle> {
        let me = me();
        let mut walk =
            Self { passed: Vec::new(), pending: Vec::new(), links: 0, missing, workspace, me };
        walk.push(&std::path::absolute(path)?);
        Ok(walk)
    }

    fn push(&mut self, path: &Path) {
        let part = |component: Component<'_>| match component {
            Component::Prefix(_) | Component::RootDir => Some(Part::Root),
            Component::ParentDir => Some(Part::Up),
            Component::Normal(name) => Some(Part::Name(name.to_owned())),
            Component::CurDir => None,
        };
        self.pending.extend(path.components().filter_map(part).rev());
    }

    fn step(&mut self, part: Part) -> Result<(), Obstacle> {
        match part {
            Part::Root => {
                self.passed.clear();
                self.pass(open("/", PASS, Mode::empty())?, PathBuf::from("/"))
            }
            Part::Up => {
                if self.passed.len() > 1 {
                    self.passed.pop();
                }
                Ok(())
            }
            Part::Name(name) => self.enter(&name),
        }
    }

    /// Returns the current directory, if no other user can replace its entries.
    fn safe_here(&self) -> Result<&Passed, Obstacle> {
        let here = self.here()?;
        match Risk::of_parent(here.stat.st_uid, here.stat.st_mode, self.me) {
            Some(risk) => Err(risk.about(&here.path)),
            None => Ok(here),
        }
    }

    /// Opens the file of this name in the current directory. `None` if it is a link, whose target
    /// is pending now.
    fn open_last(&mut self, name: &OsStr) -> Result<Option<std::fs::File>, Obstacle> {
        let here = self.safe_here()?;
        let stat = statat(&here.handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            self.follow(name, &stat)?;
            return Ok(None);
        }
        Ok(Some(open_regular_at(&here.handle, Path::new(name), LastLink::Keep)?))
    }

    fn enter(&mut self, name: &OsStr) -> Result<(), Obstacle> {
        let here = self.safe_here()?;
        match statat(&here.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => self.follow(name, &stat),
                FileType::Directory => self.descend(name),
                _ => Err(Obstacle::Unsafe(format!(
                    "`{}` is not a directory",
                    here.path.join(name).display()
                ))),
            },
            Err(Errno::NOENT) if self.missing == Missing::Made => {
                self.check_outside()?;
                match mkdirat(&self.here()?.handle, name, Mode::RWXU) {
                    // `EXIST`: another process was first. `descend` does not follow a symlink.
                    Ok(()) | Err(Errno::EXIST) => self.descend(name),
                    Err(error) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn descend(&mut self, name: &OsStr) -> Result<(), Obstacle> {
        let here = self.here()?;
        let handle = openat(&here.handle, name, PASS, Mode::empty())?;
        let path = here.path.join(name);
        self.pass(handle, path)
    }

    fn pass(&mut self, handle: OwnedFd, path: PathBuf) -> Result<(), Obstacle> {
        let stat = fstat(&handle)?;
        self.passed.push(Passed { handle, stat, path });
        Ok(())
    }

    /// Follows a symlink, if root or this user owns it: in a sticky directory another user may
    /// create a symlink to any directory of this user.
    fn follow(&mut self, name: &OsStr, stat: &Stat) -> Result<(), Obstacle> {
        let here = self.here()?;
        if stat.st_uid != 0 && stat.st_uid != self.me {
            return Err(Risk::Owner.about(&here.path.join(name)));
        }
        let target = OsString::from_vec(readlinkat(&here.handle, name, Vec::new())?.into_bytes());
        self.links = self.links.saturating_add(1);
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        self.push(Path::new(&target));
        Ok(())
    }

    fn here(&self) -> Result<&Passed, Obstacle> {
        self.passed.last().ok_or_else(|| Errno::NOENT.into())
    }

    /// Refuses a place in the workspace: a directory on the path is the workspace, or the workspace
    /// shows the place through a mount.
    fn check_outside(&self) -> Result<(), Obstacle> {
        let Some(workspace) = self.workspace else { return Ok(()) };
        let is_workspace = |passed: &Passed| workspace.identity() == Node::from_stat(&passed.stat);
        let is_inside =
            self.passed.iter().any(is_workspace) || workspace.mounts().show(&self.here()?.path);
        if is_inside { Err(Obstacle::Inside) } else { Ok(()) }
    }

    fn end(mut self) -> Result<(OwnedFd, PathBuf), Obstacle> {
        self.check_outside()?;
        let here = self.passed.pop().ok_or(Errno::NOENT)?;
        super::check(here.stat.st_uid, here.stat.st_mode, self.me).map_err(Obstacle::Unsafe)?;
        Ok((openat(&here.handle, ".", READ_DIRECTORY, Mode::empty())?, here.path))
    }
}

/// The way in which another user could replace an entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Risk {
    /// The other user owns the directory.
    Owner,
    /// The other user may write to the directory.
    Writable,
}

impl Risk {
    /// Returns the risk of a parent directory. Root is trusted, since it can replace anything. In a
    /// sticky directory an entry can be replaced only by its owner, the directory's owner and root.
    fn of_parent(owner: u32, mode: RawMode, me: u32) -> Option<Self> {
        let is_written_by_others = mode & 0o022 != 0;
        let is_sticky = mode & 0o1000 != 0;
        if owner != 0 && owner != me {
            Some(Self::Owner)
        } else if is_written_by_others && !is_sticky {
            Some(Self::Writable)
        } else {
            None
        }
    }

    fn about(self, path: &Path) -> Obstacle {
        let path = path.display();
        Obstacle::Unsafe(match self {
            Self::Owner => format!(
                "`{path}` on the way to it belongs to another user, who could replace it; name a directory below directories of your own"
            ),
            Self::Writable => format!(
                "other users can write to `{path}` on the way to it, and could replace it; `chmod go-w {path}` forbids that, or name another \
                 directory"
            ),
        })
    }
}
