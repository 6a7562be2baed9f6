//! The directory that guests see, opened once and shared by all calls.

use std::io;

use wasmtime_wasi::filesystem::{Dir, FsPerms, OpenMode};

use crate::sandbox::guard::Access;

/// A workspace directory that any number of calls can mount at the same time.
#[derive(Clone)]
pub(crate) struct Mount {
    root: Root,
}

impl Mount {
    /// Mounts the directory behind a handle. Its path is never resolved again, so guests keep the
    /// same directory even if another one takes its place later.
    ///
    /// # Errors
    ///
    /// Fails if the handle cannot be duplicated, mostly because the process has too many open
    /// files.
    pub(crate) fn new(dir: &cap_std::fs::Dir) -> io::Result<Self> {
        let handle = dir.try_clone()?.into_std_file();
        Ok(Self { root: Root(Dir::new(handle, FsPerms::ReadOnly, OpenMode::READ, true)) })
    }

    pub(in crate::sandbox::guard) fn root(&self) -> Root {
        self.root.clone()
    }
}

/// A guard's reference to a mount.
#[derive(Clone)]
pub(in crate::sandbox::guard) struct Root(Dir);

impl Root {
    /// Returns the directory with the permissions of one call, in the types of the stock layer.
    pub(super) fn dir(&self, access: Access) -> Dir {
        let mut dir = self.0.clone();
        if access == Access::ReadWrite {
            dir.perms = FsPerms::ReadWrite;
            dir.open_mode = OpenMode::READ | OpenMode::WRITE;
        }
        dir
    }
}
