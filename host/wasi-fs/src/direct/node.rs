//! The open file or directory behind a guest's `descriptor`.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode};

use super::mount::OpenDir;
use crate::Access;
use crate::errors::{Fault, Refusal};
use crate::file::{Mode, OpenFile};

/// The value in the resource table for a `descriptor`. Both types share only the index: every
/// lookup in the table asks for this type.
pub(super) enum Node {
    Dir(Arc<OpenDir>),
    File(Arc<OpenFile>),
    /// The preopened directory of a file system without a mount. It has no handle, so that every
    /// operation on it is refused.
    Unmounted,
}

impl Node {
    /// Returns the rights of the guest to the handle.
    pub(super) fn flags(&self, access: Access) -> DescriptorFlags {
        match self {
            Self::Dir(_) => match access {
                Access::ReadOnly => DescriptorFlags::READ,
                Access::ReadWrite => DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY,
            },
            Self::File(file) => match file.mode() {
                Mode::Read => DescriptorFlags::READ,
                Mode::Write => DescriptorFlags::WRITE,
                Mode::ReadWrite => DescriptorFlags::READ | DescriptorFlags::WRITE,
            },
            Self::Unmounted => DescriptorFlags::READ,
        }
    }

    pub(super) fn handle(&self) -> Result<BorrowedFd<'_>, Fault> {
        match self {
            Self::Dir(dir) => Ok(dir.handle()),
            Self::File(file) => Ok(file.as_file().as_fd()),
            Self::Unmounted => Err(Refusal::Unmounted.into()),
        }
    }

    pub(super) fn dir(&self) -> Result<&Arc<OpenDir>, Fault> {
        match self {
            Self::Dir(dir) => Ok(dir),
            Self::File(_) => Err(ErrorCode::NotDirectory.into()),
            Self::Unmounted => Err(Refusal::Unmounted.into()),
        }
    }

    /// Returns the file, or the error `otherwise` for a directory: the operations differ in their
    /// error code.
    pub(super) fn file(&self, otherwise: ErrorCode) -> Result<&Arc<OpenFile>, Fault> {
        match self {
            Self::File(file) => Ok(file),
            Self::Dir(_) => Err(otherwise.into()),
            Self::Unmounted => Err(Refusal::Unmounted.into()),
        }
    }
}
