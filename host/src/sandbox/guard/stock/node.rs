//! The value behind a guest's `descriptor`: a descriptor of the stock layer and the state for the
//! checks.

use std::io;
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::sandbox::guard::errors::Fault;
use crate::sandbox::guard::file::{Mode, OpenFile};

/// The value in the resource table for a `descriptor`. The descriptor of the stock layer has a
/// separate table entry, whose index no guest knows.
pub(super) struct Node {
    inner: u32,
    /// The path from the mount, as the guest wrote it.
    pub(super) name: String,
    file: Option<Arc<OpenFile>>,
}

impl Node {
    pub(super) fn new(inner: &Resource<Descriptor>, name: String, file: Option<OpenFile>) -> Self {
        Self { inner: inner.rep(), name, file: file.map(Arc::new) }
    }

    pub(super) fn inner(&self) -> Resource<Descriptor> {
        Resource::new_borrow(self.inner)
    }

    pub(super) fn into_inner(self) -> Resource<Descriptor> {
        Resource::new_own(self.inner)
    }

    /// Returns the file, or the error `otherwise` for a directory: the operations differ in their
    /// error code.
    pub(super) fn file(&self, otherwise: ErrorCode) -> Result<&Arc<OpenFile>, Fault> {
        self.file.as_ref().ok_or(Fault::Code(otherwise))
    }
}

/// Clones a descriptor for inline operation. The open of the stock layer takes this option from a
/// setting that is private to wasmtime-wasi.
pub(super) fn inline(descriptor: &Descriptor) -> io::Result<Descriptor> {
    Ok(match descriptor {
        Descriptor::Dir(dir) => {
            Descriptor::Dir(Dir::new(dir.dir.try_clone()?, dir.perms, dir.open_mode, true))
        }
        Descriptor::File(file) => {
            Descriptor::File(File::new(file.file.try_clone()?, file.perms, file.open_mode, true))
        }
    })
}

/// Opens a file for this layer's own streams. Returns none for a directory.
pub(super) fn open_file(descriptor: &Descriptor, name: &str) -> io::Result<Option<OpenFile>> {
    let Descriptor::File(file) = descriptor else { return Ok(None) };
    let mode =
        match (file.open_mode.contains(OpenMode::READ), file.open_mode.contains(OpenMode::WRITE)) {
            (true, true) => Mode::ReadWrite,
            (false, true) => Mode::Write,
            (_, false) => Mode::Read,
        };
    let handle = file.file.try_clone()?;
    let size = handle.metadata()?.len();
    Ok(Some(OpenFile::new(handle, mode, size, Some(name.to_owned()))))
}
