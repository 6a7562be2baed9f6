//! What stands behind a guest's `descriptor`: the stock layer's own, and what the checks need to know.

use std::io;
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::sandbox::guard::errors::Fault;
use crate::sandbox::guard::file::{Mode, OpenFile};

/// What the resource table holds for a `descriptor`. The stock layer's descriptor has an entry of its own, which no guest knows.
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

    /// The file, or `otherwise` if this is a directory: operations differ in what they say then.
    pub(super) fn file(&self, otherwise: ErrorCode) -> Result<&Arc<OpenFile>, Fault> {
        self.file.as_ref().ok_or(Fault::Code(otherwise))
    }
}

/// The same descriptor, working where it is called. The stock layer's own open leaves that to a setting that only wasmtime-wasi can make.
pub(super) fn inline(descriptor: &Descriptor) -> io::Result<Descriptor> {
    Ok(match descriptor {
        Descriptor::Dir(dir) => Descriptor::Dir(Dir::new(dir.dir.try_clone()?, dir.perms, dir.open_mode, true)),
        Descriptor::File(file) => Descriptor::File(File::new(file.file.try_clone()?, file.perms, file.open_mode, true)),
    })
}

/// A file for our own streams. `None` for a directory.
pub(super) fn open_file(descriptor: &Descriptor, name: &str) -> io::Result<Option<OpenFile>> {
    let Descriptor::File(file) = descriptor else { return Ok(None) };
    let mode = match (file.open_mode.contains(OpenMode::READ), file.open_mode.contains(OpenMode::WRITE)) {
        (true, true) => Mode::ReadWrite,
        (false, true) => Mode::Write,
        (_, false) => Mode::Read,
    };
    let handle = file.file.try_clone()?;
    let size = handle.metadata()?.len();
    Ok(Some(OpenFile::new(handle, mode, size, Some(name.to_owned()))))
}
