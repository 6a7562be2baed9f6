//! The file system of one call, and its link to wasmtime.

use std::borrow::Cow;
use std::sync::Arc;

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

use crate::budget::{DescriptorLimit, ResourceBudget};
use crate::direct::{self, Mount, Root};
use crate::errors::{Fault, Refusal};
use crate::protected_paths::ProtectedPaths;
use crate::quotas::{Exhausted, Quotas, SharedQuotas};
use crate::usage::Usage;

/// The default name of the guest's only preopened directory. Relative paths resolve against it as
/// well, because wasi-libc strips the leading slash of both.
pub(crate) const PREOPEN_NAME: &str = "/";

/// The maximum number of temporary files that [`Filesystem::remove_temp_files`] removes. A guest
/// that replaces its files one after the other has one; the removal of eight takes some ten
/// milliseconds in the deepest directory.
pub const MAX_TEMP_FILES: usize = 8;

/// The access rights of a guest to the mounted directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only. Every operation that would change a file, a directory or metadata fails with
    /// not-permitted.
    ReadOnly,
    /// Everything except the creation of symbolic links, which no guest may do.
    ReadWrite,
}

impl Access {
    /// Refuses a change, unless the mount is writable.
    pub(crate) fn check_writable(self) -> Result<(), Fault> {
        match self {
            Self::ReadWrite => Ok(()),
            Self::ReadOnly => Err(Fault::Refused(Refusal::ReadOnly)),
        }
    }
}

/// The bounds of a [`Filesystem`], and the name of its preopened directory.
#[derive(Clone, Debug)]
pub struct Options {
    quotas: Quotas,
    shared: Option<Arc<SharedQuotas>>,
    budget: Arc<dyn ResourceBudget>,
    preopen_name: Cow<'static, str>,
}

impl Options {
    /// Creates options with default quotas and the preopened directory `/`. File descriptors, and
    /// the memory of the change log, are counted in `budget`, which other file systems may share.
    pub fn new(budget: Arc<dyn ResourceBudget>) -> Self {
        let preopen_name = PREOPEN_NAME.into();
        Self { quotas: Quotas::default(), shared: None, budget, preopen_name }
    }

    /// Sets the quotas.
    #[must_use]
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }

    /// Sets quotas that other file systems use up as well.
    #[must_use]
    pub fn within(self, shared: Arc<SharedQuotas>) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Sets another name of the preopened directory.
    #[must_use]
    pub fn with_preopen_name(self, name: impl Into<Cow<'static, str>>) -> Self {
        Self { preopen_name: name.into(), ..self }
    }
}

/// Default quotas, and a [`DescriptorLimit`] that no other file system shares.
impl Default for Options {
    fn default() -> Self {
        Self::new(Arc::new(DescriptorLimit::default()))
    }
}

/// The file system of one call: its mount, its usage and its change log.
///
/// It belongs into the data of one [`Store`](wasmtime::Store), and is discarded with it.
#[derive(Debug)]
pub struct Filesystem {
    pub(crate) root: Option<Root>,
    pub(crate) name: Cow<'static, str>,
    pub(crate) access: Access,
    pub(crate) usage: Arc<Usage>,
}

impl Filesystem {
    /// Creates the file system of one call, with the mounted directory as the only preopened one.
    /// `protected` must be of the same directory; nothing can be changed otherwise.
    pub fn new(
        mount: &Mount,
        access: Access,
        protected: Arc<ProtectedPaths>,
        options: Options,
    ) -> Self {
        let Options { quotas, shared, budget, preopen_name } = options;
        let usage = Usage::new(quotas, Some(protected), Some(budget)).within(shared);
        Self { root: Some(mount.root()), name: preopen_name, access, usage: Arc::new(usage) }
    }

    /// Creates a file system without a mount. The preopened directory of the guest has no handle
    /// behind it, and every operation on it is refused with [`Refusal::Unmounted`].
    pub fn closed() -> Self {
        let usage = Usage::new(Quotas::default(), None, None);
        Self {
            root: None,
            name: PREOPEN_NAME.into(),
            access: Access::ReadOnly,
            usage: Arc::new(usage),
        }
    }

    /// Returns whether the guest has looked for files in a file system without a mount. To ask for
    /// the preopened directory does not count: some standard libraries do that at their start.
    pub fn is_missed(&self) -> bool {
        self.refusal() == Some(&Refusal::Unmounted)
    }

    /// Returns whether the mounted file system had no room for a write of the guest: it is full, or
    /// a quota of its user is. Some standard libraries tell this as any other error of a stream.
    pub fn is_full(&self) -> bool {
        self.usage.is_full()
    }

    /// Releases the mounted directory. Open files of the guest are released with its resource
    /// table.
    pub fn close(&mut self) {
        self.root = None;
    }

    /// Returns whether an operation was refused.
    #[cfg(test)]
    pub(crate) fn refused(&self) -> bool {
        self.refusal().is_some()
    }

    /// Returns the first refusal. Errors of the operating system, such as a file without read
    /// permission, do not count.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.usage.refusal()
    }

    /// Returns the number of bytes that the guest has read from files.
    pub fn bytes_read(&self) -> u64 {
        self.usage.bytes_read()
    }

    /// Returns the number of bytes that the guest has written to files. Holes count towards the
    /// quota, but not here.
    pub fn bytes_written(&self) -> u64 {
        self.usage.bytes_written()
    }

    /// Returns the first quota that the guest exceeded.
    pub fn exhausted(&self) -> Option<Exhausted> {
        self.usage.exhausted()
    }

    /// Returns the changed paths relative to the mount, without duplicates, in the order of their
    /// first change. Symbolic links are resolved, and entries that the guest created and removed
    /// again are omitted. The list holds at most 4,096 paths;
    /// [`modified_unlisted`](Self::modified_unlisted) counts the changes beyond that.
    pub fn modified(&self) -> Vec<String> {
        self.usage.modified()
    }

    /// Returns the number of changes that did not fit into [`modified`](Self::modified).
    pub fn modified_unlisted(&self) -> u64 {
        self.usage.modified_unlisted()
    }

    /// Returns whether the guest has changed anything so far, including files that it created and
    /// removed again.
    pub fn has_changed_anything(&self) -> bool {
        self.bytes_written() > 0 || self.modified_unlisted() > 0 || !self.modified().is_empty()
    }

    /// Removes the temporary files of an interrupted guest: the last [`MAX_TEMP_FILES`] files that
    /// it created, and has not renamed, under a name that `is_temporary` accepts. Other files, such
    /// as one that the guest has moved to such a name, and those that cannot be removed, stay in
    /// [`modified`](Self::modified).
    pub fn remove_temp_files(&self, is_temporary: impl Fn(&str) -> bool) {
        let Some(root) = &self.root else { return };
        for path in self.usage.created(is_temporary).into_iter().take(MAX_TEMP_FILES) {
            if let Err(error) = direct::remove_new(root, &path, &self.usage) {
                tracing::debug!("a temporary file was left behind: {error}");
            }
        }
    }
}

/// The parts of a store that serve one file operation.
#[derive(Debug)]
pub struct FilesystemView<'a> {
    /// The file system of the guest.
    pub filesystem: &'a mut Filesystem,
    /// The resource table of the store, the same one that `WasiView::ctx` returns.
    pub table: &'a mut ResourceTable,
}

/// The data of a store that holds a [`Filesystem`].
pub trait HasFilesystem: Send {
    /// Returns the file system together with the store's resource table.
    fn filesystem(&mut self) -> FilesystemView<'_>;
}

/// Links the guarded `wasi:filesystem/types` and `wasi:filesystem/preopens`. Their operations run
/// on the thread that polls the guest, and never wait. Those that look at many entries yield to the
/// host.
///
/// The rest of WASI comes from `wasmtime_wasi::p2::add_to_linker_async`, which links a
/// `wasi:filesystem` as well: link this one later, with
/// [`allow_shadowing`](Linker::allow_shadowing).
///
/// # Errors
///
/// Fails if the two interfaces are linked already, unless the linker allows shadowing.
pub fn add_to_linker<T: HasFilesystem + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    types::add_to_linker::<T, LinkedFilesystem>(linker, T::filesystem)?;
    preopens::add_to_linker::<T, LinkedFilesystem>(linker, T::filesystem)
}

/// The marker type for the linked host traits.
struct LinkedFilesystem;

impl HasData for LinkedFilesystem {
    type Data<'a> = FilesystemView<'a>;
}
