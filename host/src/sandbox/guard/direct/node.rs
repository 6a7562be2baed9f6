//! What stands behind a guest's `descriptor`: an open file or directory.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::mount::OpenDir;
use crate::sandbox::guard::errors::Fault;
use crate::sandbox::guard::file::OpenFile;

/// What the resource table holds for a `descriptor`. It goes by that type's name only through its index: the table is asked for this type.
pub(super) enum Node {
    Dir(Arc<OpenDir>),
    File(Arc<OpenFile>),
}

impl Node {
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        match self {
            Self::Dir(dir) => dir.handle(),
            Self::File(file) => file.as_file().as_fd(),
        }
    }

    pub(super) fn dir(&self) -> Result<&Arc<OpenDir>, Fault> {
        match self {
            Self::Dir(dir) => Ok(dir),
            Self::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// The file, or `otherwise` if this is a directory: operations differ in what they say then.
    pub(super) fn file(&self, otherwise: ErrorCode) -> Result<&Arc<OpenFile>, Fault> {
        match self {
            Self::File(file) => Ok(file),
            Self::Dir(_) => Err(otherwise.into()),
        }
    }
}
