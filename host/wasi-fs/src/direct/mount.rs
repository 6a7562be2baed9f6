//! The directory that guests see, held open and shared by all calls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::fstat;

use super::kernel::Device;
use super::locate::{self, is_directory};
use crate::fd_budget::HeldFd;
use crate::inspect::Opener;

/// A directory that any number of guests can see at the same time.
///
/// It is made once from an open directory, such as a [`File`](std::fs::File) or a `cap_std` `Dir`,
/// and shared by all calls.
#[derive(Clone, Debug)]
pub struct Mount {
    root: Arc<OpenDir>,
}

impl Mount {
    /// Mounts the directory behind a handle. Its path is never resolved again, so guests keep the
    /// same directory even if another one takes its place later.
    ///
    /// # Errors
    ///
    /// Fails if the handle is not that of a directory, or cannot be duplicated, mostly because the
    /// process has too many open files.
    pub fn new(dir: impl AsFd) -> io::Result<Self> {
        let handle = duplicate(dir)?;
        let resolver = locate::best_resolver(handle.as_fd());
        Ok(Self::with_resolver(handle, resolver))
    }

    /// Mounts the directory as on a system without `openat2`.
    #[doc(hidden)]
    pub fn walked(dir: impl AsFd) -> io::Result<Self> {
        Ok(Self::with_resolver(duplicate(dir)?, Resolver::Walk))
    }

    pub(crate) fn with_resolver(handle: OwnedFd, resolver: Resolver) -> Self {
        Self::with_ways(handle, resolver, Opener::best())
    }

    /// Uses an explicit way of opening files instead of the best one of this system.
    pub(crate) fn with_ways(handle: OwnedFd, resolver: Resolver, opener: Opener) -> Self {
        let device = Device::new(&handle);
        Self {
            root: Arc::new(OpenDir {
                handle,
                name: String::new(),
                resolver,
                opener,
                device,
                _fd: None,
            }),
        }
    }

    pub(crate) fn root(&self) -> Root {
        Arc::clone(&self.root)
    }
}

fn duplicate(dir: impl AsFd) -> io::Result<OwnedFd> {
    let handle = dir.as_fd().try_clone_to_owned()?;
    if is_directory(&fstat(&handle)?) {
        Ok(handle)
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

/// The reference of a file system to a mount.
pub(crate) type Root = Arc<OpenDir>;

/// The method of resolving paths beneath a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// By one `openat2` call. Paths with symbolic links are walked all the same, to learn their
    /// real names.
    #[cfg(target_os = "linux")]
    Kernel,
    /// Component by component, where `openat2` does not exist (before Linux 5.6, other systems) or
    /// is forbidden (seccomp).
    Walk,
}

/// An open directory of the mount.
#[derive(Debug)]
pub(crate) struct OpenDir {
    handle: OwnedFd,
    name: String,
    resolver: Resolver,
    opener: Opener,
    device: Device,
    _fd: Option<HeldFd>,
}

impl OpenDir {
    /// Creates a directory that a guest has opened beneath this one.
    pub(super) fn below(&self, handle: OwnedFd, name: String, fd: HeldFd) -> Self {
        let (resolver, opener, device) = (self.resolver, self.opener, self.device);
        Self { handle, name, resolver, opener, device, _fd: Some(fd) }
    }

    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Returns the real name, relative to the mount; empty for the mount itself.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the device of the mount.
    pub(super) fn device(&self) -> Device {
        self.device
    }

    pub(crate) fn resolver(&self) -> Resolver {
        self.resolver
    }

    /// Returns the method of opening a file after its type check.
    pub(super) fn opener(&self) -> Opener {
        self.opener
    }
}
