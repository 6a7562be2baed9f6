//! Resolves the path of such a file component by component with directory handles. The kernel
//! follows no symbolic link here, except in `/proc`. A chain of links that begins outside of the
//! workspace can lead through a link in the workspace, which could redirect the lines over another
//! file of the user. So this code follows each link itself, and refuses the links in the workspace.

use super::former::{self, Content, Former};
use super::planted;
use palisade::internal::may_be_planted;
use palisade::workspace::Workspace;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path};

/// Maximum number of symlinks in a path, as in Linux.
const MAX_LINKS: usize = 40;

/// The access with which a directory on the path is opened. `PATH` needs no read permission.
#[cfg(target_os = "linux")]
const ACCESS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const ACCESS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);
/// Flags for opening a directory on the path.
const PASS: OFlags = ACCESS.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Flags for opening the file.
const FILE: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::CREATE)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Flags for reading the former content of the file.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens the file at a path and creates it if it is missing.
///
/// # Errors
///
/// If the file cannot be opened, if a symbolic link on the path lies in the workspace, or if the
/// file holds other content than is expected.
pub(super) fn open(
    path: &Path,
    workspace: &Workspace,
    content: Content,
) -> io::Result<(File, Former)> {
    let here = openat(CWD, ".", PASS, Mode::empty())?;
    let mut walk = Walk { here, pending: Vec::new(), links: 0, workspace, content };
    walk.push(path)?;
    while let Some(name) = walk.pending.pop() {
        if walk.pending.is_empty() && name != ".." {
            if let Some(file) = walk.end(&name)? {
                return Ok(file);
            }
        } else {
            walk.pass(&name)?;
        }
    }
    Err(io::Error::other("it names no file"))
}

struct Walk<'a> {
    here: OwnedFd,
    /// The components that are still to be resolved, in reverse order: the next component is the
    /// last element.
    pending: Vec<OsString>,
    links: usize,
    workspace: &'a Workspace,
    content: Content,
}

impl Walk<'_> {
    fn push(&mut self, path: &Path) -> io::Result<()> {
        if path.is_absolute() {
            self.here = openat(CWD, "/", PASS, Mode::empty())?;
        }
        let names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
        self.pending.extend(names.collect::<Vec<_>>().into_iter().rev());
        Ok(())
    }

    /// Enters a directory, or follows the symlink of that name.
    fn pass(&mut self, name: &OsStr) -> io::Result<()> {
        if !self.is_link(name)? {
            self.here = openat(&self.here, name, PASS | self.own_links(), Mode::empty())?;
            return Ok(());
        }
        self.follow(name)
    }

    /// Opens the file of the last component, or follows the symlink of that name.
    fn end(&mut self, name: &OsStr) -> io::Result<Option<(File, Former)>> {
        if self.is_link(name)? {
            self.follow(name)?;
            return Ok(None);
        }
        let file = File::from(openat(
            &self.here,
            name,
            FILE | self.own_links(),
            Mode::from_raw_mode(0o666),
        )?);
        let former = former::check(&file, self.content, || {
            Ok(File::from(openat(&self.here, name, READ | self.own_links(), Mode::empty())?))
        })?;
        Ok(Some((file, former)))
    }

    /// Returns whether the name is a symlink that this walk must follow. A symlink that replaces
    /// another file after this check makes `openat` fail, because it is called with `O_NOFOLLOW`.
    fn is_link(&self, name: &OsStr) -> io::Result<bool> {
        match statat(&self.here, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
                Ok(is_link && !self.own_links().is_empty())
            }
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn follow(&mut self, name: &OsStr) -> io::Result<()> {
        if self.workspace.lies_inside(self.here.as_fd())? {
            return Err(planted(name.as_ref()));
        }
        if may_be_planted(self.here.as_fd(), name)? {
            let whose = "it is a symbolic link of another user in a directory for all users";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, whose));
        }
        self.links = self.links.saturating_add(1);
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = OsString::from_vec(readlinkat(&self.here, name, Vec::new())?.into_bytes());
        self.push(Path::new(&target))
    }

    /// Returns the flag for opening a name in this directory: `NOFOLLOW`, except in `/proc`. A link
    /// in `/proc` stands for an open file, such as the pipe behind `/dev/stdout`. Only the kernel
    /// can follow such a link, and it leads straight to the file, without further links.
    fn own_links(&self) -> OFlags {
        #[cfg(target_os = "linux")]
        if rustix::fs::fstatfs(&self.here)
            .is_ok_and(|kind| kind.f_type == rustix::fs::PROC_SUPER_MAGIC)
        {
            return OFlags::empty();
        }
        OFlags::NOFOLLOW
    }
}
