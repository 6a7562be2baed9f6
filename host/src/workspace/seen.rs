//! Looking at a file before it is opened: opening a pipe or a device has effects, whatever is done with it afterwards.
//!
//! On Linux an `O_PATH` handle is opened first, which opens nothing but the name, and the very file behind that handle is opened
//! next. Elsewhere, and where `/proc` is not mounted, the name is opened a second time and has to lead to the file that was seen.

use super::LastLink;
use super::rules::Identity;
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

/// Without waiting for the other end of a pipe, without getting a terminal, and for this process alone.
pub(crate) const QUIETLY: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// How a directory is opened whose entries are read, or which is locked or brought to the disk.
pub(crate) const READ_DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(QUIETLY);

/// How a file that has been seen is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opener {
    /// Through the handle by which it was seen, which no change of names can lead elsewhere.
    #[cfg(target_os = "linux")]
    Handle,
    /// By its name once more.
    Name,
}

impl Opener {
    /// The better way that this system has, found out once.
    #[cfg(target_os = "linux")]
    pub(crate) fn best() -> Self {
        if DESCRIPTORS.is_some() { Self::Handle } else { Self::Name }
    }

    /// The one way that this system has.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn best() -> Self {
        Self::Name
    }
}

/// The directory of `/proc` that leads to what is open here, held open: to walk there each time costs as much as all the rest.
#[cfg(target_os = "linux")]
struct Descriptors {
    dir: OwnedFd,
    /// The process whose descriptors these are. After a fork they are not the child's.
    process: Pid,
}

#[cfg(target_os = "linux")]
static DESCRIPTORS: LazyLock<Option<Descriptors>> = LazyLock::new(|| Descriptors::open().ok());

#[cfg(target_os = "linux")]
impl Descriptors {
    /// Opens the directory, and tries whether it leads back.
    fn open() -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(CWD, "/proc/self/fd", flags, Mode::empty())?;
        let own = Self { dir, process: getpid() };
        let back = own.reopen(&own.dir, flags)?;
        let [there, here] = [&back, &own.dir].map(|handle| fstat(handle).map(|stat| Identity::from_stat(&stat)));
        if there? == here? { Ok(own) } else { Err(Errno::NOENT) }
    }

    /// Opens the very file behind a handle: the link leads to it, whatever its names lead to by now.
    fn reopen(&self, handle: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (number, flags) = (DecInt::from_fd(handle), flags - OFlags::NOFOLLOW);
        if self.process == getpid() {
            return retry_on_intr(|| openat(&self.dir, number.as_c_str(), flags, Mode::empty()));
        }
        let link = format!("/proc/self/fd/{}", number.as_str());
        retry_on_intr(|| openat(CWD, &link, flags, Mode::empty()))
    }
}

/// What a name leads to, looked at and not opened.
pub(crate) struct Seen {
    #[cfg(target_os = "linux")]
    handle: OwnedFd,
    stat: Stat,
}

impl Seen {
    /// What stands under a name in a directory.
    pub(crate) fn at(dir: impl AsFd, name: impl rustix::path::Arg, last: LastLink) -> Result<Self, Errno> {
        #[cfg(target_os = "linux")]
        {
            let own = if last == LastLink::Keep { OFlags::NOFOLLOW } else { OFlags::empty() };
            Self::of(openat(dir, name, OFlags::PATH | OFlags::CLOEXEC | own, Mode::empty())?)
        }
        #[cfg(not(target_os = "linux"))]
        {
            use rustix::fs::{AtFlags, statat};
            let own = if last == LastLink::Keep { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
            Ok(Self { stat: statat(dir, name, own)? })
        }
    }

    /// What an `O_PATH` handle leads to.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(handle: OwnedFd) -> Result<Self, Errno> {
        let stat = fstat(&handle)?;
        Ok(Self { handle, stat })
    }

    pub(crate) fn stat(&self) -> &Stat {
        &self.stat
    }

    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// The handle itself. For a directory it is good for everything that is done with names in it.
    #[cfg(target_os = "linux")]
    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn into_handle(self) -> OwnedFd {
        self.handle
    }

    /// Opens it. `by_name` opens what the name leads to by now, in case that has to be done.
    ///
    /// # Errors
    ///
    /// What the system says; `EAGAIN` where the name leads to another file by now.
    pub(crate) fn open<E: From<Errno>>(
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
                if now == Identity::from_stat(&self.stat) { Ok(opened) } else { Err(Errno::AGAIN.into()) }
            }
        }
    }
}
