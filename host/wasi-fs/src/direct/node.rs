//! The open file or directory behind a guest's `descriptor`.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::mount::OpenDir;
use crate::errors::Fault;
use crate::file::OpenFile;

/// The value in the resource table for a `descriptor`. Both types share only the index: every
/// lookup in the table asks for this type.
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

    /// Returns the file, or the error `otherwise` for a directory: the operations differ in their
    /// error code.
    pub(super) fn file(&self, otherwise: ErrorCode) -> Result<&Arc<OpenFile>, Fault> {
        match self {
            Self::File(file) => Ok(file),
            Self::Dir(_) => Err(otherwise.into()),
        }
    }
}
