//! Inspects a file before it is opened, since opening a pipe or a device has side effects.
//!
//! On Linux an `O_PATH` handle, which has no side effects, is opened first and then reopened
//! through `/proc/self/fd`, which reaches the same file. On other systems, and without `/proc`, the
//! name is opened a second time and must refer to the inspected file.

use super::protected_paths::Identity;
#[cfg(target_os = "linux")]
use rustix::fs::CWD;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::io::retry_on_intr;
#[cfg(target_os = "linux")]
use rustix::path::DecInt;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, getpid};
use std::os::fd::{AsFd, OwnedFd};
#[cfg(target_os = "linux")]
use std::sync::LazyLock;

/// The flags to open a file without blocking on a pipe, without acquiring a controlling terminal,
/// and without inheritance by child processes.
pub const QUIETLY: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The flags to open a directory for listing, locking or syncing.
pub const READ_DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(QUIETLY);

/// The treatment of a symbolic link in the last component of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLink {
    /// The path names the target of the link, which must lie inside.
    Follow,
    /// The path names the link itself.
    Keep,
}

/// The method of opening a file after its inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// Through the handle of the inspection, which no rename can redirect.
    #[cfg(target_os = "linux")]
    Handle,
    /// By name a second time.
    Name,
}

impl Opener {
    /// Returns the better method that this system supports. Probed once.
    #[cfg(target_os = "linux")]
    pub fn best() -> Self {
        if DESCRIPTORS.is_some() { Self::Handle } else { Self::Name }
    }

    /// Returns the only method of this system.
    #[cfg(not(target_os = "linux"))]
    pub fn best() -> Self {
        Self::Name
    }
}

/// The `fd` directory of `/proc`, held open: resolving it for each open would cost as much as the
/// rest of the open.
#[cfg(target_os = "linux")]
struct Descriptors {
    dir: OwnedFd,
    /// The process that opened the directory. A forked child has other file descriptors.
    process: Pid,
}

#[cfg(target_os = "linux")]
static DESCRIPTORS: LazyLock<Option<Descriptors>> = LazyLock::new(|| Descriptors::open().ok());

#[cfg(target_os = "linux")]
impl Descriptors {
    /// Opens the directory and verifies that it works, by reopening itself.
    fn open() -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(CWD, "/proc/self/fd", flags, Mode::empty())?;
        let own = Self { dir, process: getpid() };
        let back = own.reopen(&own.dir, flags)?;
        let [there, here] =
            [&back, &own.dir].map(|handle| fstat(handle).map(|stat| Identity::from_stat(&stat)));
        if there? == here? { Ok(own) } else { Err(Errno::NOENT) }
    }

    /// Reopens the file behind a handle, independent of its current names.
    fn reopen(&self, handle: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        // The entry in `/proc` is itself a link, which must be followed.
        let number = DecInt::from_fd(handle);
        let flags = flags - OFlags::NOFOLLOW;
        if self.process == getpid() {
            return retry_on_intr(|| openat(&self.dir, number.as_c_str(), flags, Mode::empty()));
        }
        let link = format!("/proc/self/fd/{}", number.as_str());
        retry_on_intr(|| openat(CWD, &link, flags, Mode::empty()))
    }
}

/// A file that was inspected and not opened.
#[derive(Debug)]
pub struct Inspected {
    #[cfg(target_os = "linux")]
    handle: OwnedFd,
    stat: Stat,
}

impl Inspected {
    /// Inspects the entry under a name in a directory.
    pub fn at(dir: impl AsFd, name: impl rustix::path::Arg, last: LastLink) -> Result<Self, Errno> {
        #[cfg(target_os = "linux")]
        {
            let own = if last == LastLink::Keep { OFlags::NOFOLLOW } else { OFlags::empty() };
            Self::from_handle(openat(
                dir,
                name,
                OFlags::PATH | OFlags::CLOEXEC | own,
                Mode::empty(),
            )?)
        }
        #[cfg(not(target_os = "linux"))]
        {
            use rustix::fs::{AtFlags, statat};
            let own =
                if last == LastLink::Keep { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
            Ok(Self { stat: statat(dir, name, own)? })
        }
    }

    /// Inspects the file behind an `O_PATH` handle.
    #[cfg(target_os = "linux")]
    pub fn from_handle(handle: OwnedFd) -> Result<Self, Errno> {
        let stat = fstat(&handle)?;
        Ok(Self { handle, stat })
    }

    /// Returns the metadata of the inspection.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Returns the type of the file.
    pub fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Returns the handle. For a directory it serves every operation on its entries.
    #[cfg(target_os = "linux")]
    pub fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    #[cfg(target_os = "linux")]
    /// Returns the handle and ends the inspection.
    pub fn into_handle(self) -> OwnedFd {
        self.handle
    }

    /// Opens the file. `by_name` opens the current file of the name, if this is the method.
    ///
    /// # Errors
    ///
    /// The errors of the system; `EAGAIN` if the name refers to another file now.
    pub fn open<E: From<Errno>>(
        &self,
        opener: Opener,
        flags: OFlags,
        by_name: impl FnOnce(OFlags) -> Result<OwnedFd, E>,
    ) -> Result<OwnedFd, E> {
        match opener {
            #[cfg(target_os = "linux")]
            Opener::Handle => {
                let descriptors = DESCRIPTORS.as_ref().ok_or(Errno::NOENT)?;
                Ok(descriptors.reopen(&self.handle, flags)?)
            }
            Opener::Name => {
                let opened = by_name(flags)?;
                let now = Identity::from_stat(&fstat(&opened)?);
                if now == Identity::from_stat(&self.stat) {
                    Ok(opened)
                } else {
                    Err(Errno::AGAIN.into())
                }
            }
        }
    }
}
