//! The directory that guests see, opened once and shared by all calls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::kernel::Device;
use super::locate;
use crate::sandbox::guard::held::Held;
use crate::workspace::Opener;

/// A workspace directory, ready to be mounted into any number of calls at once.
#[derive(Clone)]
pub(crate) struct Mount {
    root: Arc<OpenDir>,
}

impl Mount {
    /// Mounts the directory behind this very handle. Its path is never looked at, so whatever is put in its place later is not what guests see.
    ///
    /// # Errors
    ///
    /// Fails if the handle cannot be duplicated, mostly because the process has too many files open.
    pub(crate) fn new(dir: &cap_std::fs::Dir) -> io::Result<Self> {
        let handle = OwnedFd::from(dir.try_clone()?.into_std_file());
        let resolver = locate::best_resolver(handle.as_fd());
        Ok(Self::with_resolver(handle, resolver))
    }

    /// As on a system without `openat2`.
    #[cfg(test)]
    pub(crate) fn walked(dir: &cap_std::fs::Dir) -> io::Result<Self> {
        let handle = OwnedFd::from(dir.try_clone()?.into_std_file());
        Ok(Self::with_resolver(handle, Resolver::Walk))
    }

    pub(in crate::sandbox::guard) fn with_resolver(handle: OwnedFd, resolver: Resolver) -> Self {
        Self::with_ways(handle, resolver, Opener::best())
    }

    /// With a way of opening that need not be the best of this system.
    pub(in crate::sandbox::guard) fn with_ways(handle: OwnedFd, resolver: Resolver, opener: Opener) -> Self {
        let device = Device::of(&handle);
        Self { root: Arc::new(OpenDir { handle, name: String::new(), resolver, opener, device, _held: None }) }
    }

    pub(in crate::sandbox::guard) fn root(&self) -> Root {
        Arc::clone(&self.root)
    }
}

/// What a guard keeps of a mount.
pub(in crate::sandbox::guard) type Root = Arc<OpenDir>;

/// How paths are resolved beneath a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox::guard) enum Resolver {
    /// By the kernel, in one `openat2`; paths with symbolic links are walked nevertheless, so that their real names are known.
    #[cfg(target_os = "linux")]
    Kernel,
    /// Component by component: where `openat2` does not exist (before Linux 5.6, other systems) or is forbidden (seccomp).
    Walk,
}

/// An open directory of the mount.
pub(in crate::sandbox::guard) struct OpenDir {
    handle: OwnedFd,
    name: String,
    resolver: Resolver,
    opener: Opener,
    device: Device,
    _held: Option<Held>,
}

impl OpenDir {
    /// One that a guest has opened from this.
    pub(super) fn below(&self, handle: OwnedFd, name: String, held: Held) -> Self {
        let (resolver, opener, device) = (self.resolver, self.opener, self.device);
        Self { handle, name, resolver, opener, device, _held: Some(held) }
    }

    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// The real name, relative to the mount; empty for the mount itself.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The device of the mount.
    pub(super) fn device(&self) -> Device {
        self.device
    }

    pub(in crate::sandbox::guard) fn resolver(&self) -> Resolver {
        self.resolver
    }

    /// How a file is opened that has been seen.
    pub(super) fn opener(&self) -> Opener {
        self.opener
    }
}
