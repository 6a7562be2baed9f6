//! The directory that guests see, opened once and shared by all calls.

use std::io;

use wasmtime_wasi::filesystem::{Dir, FsPerms, OpenMode};

use crate::sandbox::guard::Access;

/// A workspace directory, ready to be mounted into any number of calls at once.
#[derive(Clone)]
pub(crate) struct Mount {
    root: Root,
}

impl Mount {
    /// Mounts the directory behind this very handle. Its path is never looked at, so whatever is put in its place later is not what guests see.
    ///
    /// # Errors
    ///
    /// Fails if the handle cannot be duplicated, mostly because the process has too many files open.
    pub(crate) fn new(dir: &cap_std::fs::Dir) -> io::Result<Self> {
        let handle = dir.try_clone()?.into_std_file();
        Ok(Self { root: Root(Dir::new(handle, FsPerms::ReadOnly, OpenMode::READ, true)) })
    }

    pub(in crate::sandbox::guard) fn root(&self) -> Root {
        self.root.clone()
    }
}

/// What a guard keeps of a mount.
#[derive(Clone)]
pub(in crate::sandbox::guard) struct Root(Dir);

impl Root {
    /// The directory with the permissions of one call, as the stock layer knows them.
    pub(super) fn dir(&self, access: Access) -> Dir {
        let mut dir = self.0.clone();
        if access == Access::ReadWrite {
            dir.perms = FsPerms::ReadWrite;
            dir.open_mode = OpenMode::READ | OpenMode::WRITE;
        }
        dir
    }
}
