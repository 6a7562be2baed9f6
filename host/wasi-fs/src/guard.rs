//! The file system of one call, and its link to wasmtime.

use std::borrow::Cow;
use std::sync::Arc;

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

use super::budget::{DescriptorLimit, ResourceBudget};
use super::direct::{self, Mount, Root};
use super::errors::{Fault, Refusal};
use super::ledger::{Exhausted, Ledger, Quotas};
use super::rules::Rules;

/// The name of the guest's only preopened directory. Relative paths resolve against it as well,
/// because wasi-libc strips the leading slash of both.
pub(crate) const PREOPEN_NAME: &str = "/";

/// The access rights of a call to the mounted directory.
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

/// The bounds of one call, and the name of its preopened directory.
#[derive(Clone, Debug)]
pub struct Options {
    quotas: Quotas,
    budget: Arc<dyn ResourceBudget>,
    preopen_name: Cow<'static, str>,
}

impl Options {
    /// Creates the options of a call with default quotas. The call's file descriptors, and the
    /// memory of its change log, are counted in `budget`.
    pub fn new(budget: Arc<dyn ResourceBudget>) -> Self {
        Self { quotas: Quotas::default(), budget, preopen_name: PREOPEN_NAME.into() }
    }

    /// Sets the quotas.
    #[must_use]
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }

    /// Sets another name of the preopened directory, for guests that expect one.
    #[must_use]
    pub fn with_preopen_name(self, name: String) -> Self {
        Self { preopen_name: name.into(), ..self }
    }
}

/// Default quotas, and a budget that no other call shares.
impl Default for Options {
    fn default() -> Self {
        Self::new(Arc::new(DescriptorLimit::default()))
    }
}

/// The file system of one call: its mount, its usage and its change log.
#[derive(Debug)]
pub struct Guard {
    pub(crate) root: Option<Root>,
    pub(crate) name: Cow<'static, str>,
    pub(crate) access: Access,
    pub(crate) ledger: Arc<Ledger>,
}

impl Guard {
    /// Creates the guard of one call.
    pub fn new(mount: &Mount, access: Access, rules: Arc<Rules>, options: Options) -> Self {
        let Options { quotas, budget, preopen_name } = options;
        let ledger = Ledger::new(quotas, Some(rules), Some(budget));
        Self { root: Some(mount.root()), name: preopen_name, access, ledger: Arc::new(ledger) }
    }

    /// Creates the guard of a call without a mount: the guest has no preopened directory, and so
    /// cannot name any file.
    pub fn closed() -> Self {
        let ledger = Ledger::new(Quotas::default(), None, None);
        Self {
            root: None,
            name: PREOPEN_NAME.into(),
            access: Access::ReadOnly,
            ledger: Arc::new(ledger),
        }
    }

    /// Releases the mounted directory.
    pub fn close(&mut self) {
        self.root = None;
    }

    /// Returns whether this layer has refused an operation in this call.
    #[cfg(test)]
    pub fn refused(&self) -> bool {
        self.refusal().is_some()
    }

    /// Returns the first refusal of this layer in this call. Errors of the operating system, such
    /// as a file without read permission, do not count.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.ledger.refusal()
    }

    /// Returns the number of bytes that the guest has read from files.
    pub fn bytes_read(&self) -> u64 {
        self.ledger.bytes_read()
    }

    /// Returns the number of bytes that the guest has written to files. Holes count towards the
    /// quota, but not here.
    pub fn bytes_written(&self) -> u64 {
        self.ledger.bytes_written()
    }

    /// Returns the first quota that the guest exceeded.
    pub fn exhausted(&self) -> Option<Exhausted> {
        self.ledger.exhausted()
    }

    /// Returns the changed paths relative to the mount, without duplicates, in the order of their
    /// first change. Symbolic links are resolved, and entries that the call created and removed
    /// again are omitted. The list holds at most [`journal::MAX_PATHS`] paths;
    /// [`Guard::modified_unlisted`] counts the changes beyond that.
    pub fn modified(&self) -> Vec<String> {
        self.ledger.modified()
    }

    /// Returns whether the guest has changed anything so far, including files that it created and
    /// removed again.
    pub fn has_changed_anything(&self) -> bool {
        self.bytes_written() > 0 || self.modified_unlisted() > 0 || !self.modified().is_empty()
    }

    /// Removes the temporary files of an interrupted call: the files that the call created, and has
    /// not renamed, under a name that `is_temporary` accepts. Files that cannot be removed stay in
    /// [`Guard::modified`].
    pub fn tidy(&self, is_temporary: impl Fn(&str) -> bool) {
        let Some(root) = &self.root else { return };
        for path in self.ledger.created(is_temporary) {
            if let Err(error) = direct::unlink(root, &path, &self.ledger) {
                tracing::debug!("a temporary file was left behind: {error}");
            }
        }
    }

    /// Returns the number of changes that did not fit into [`Guard::modified`].
    pub fn modified_unlisted(&self) -> u64 {
        self.ledger.modified_unlisted()
    }
}

/// The parts of a store that the guarded file system needs to serve one host call.
#[derive(Debug)]
pub struct GuardView<'a> {
    /// The guard of the call.
    pub guard: &'a mut Guard,
    /// The resource table of the call, the same one that `WasiView::ctx` returns.
    pub table: &'a mut ResourceTable,
}

/// The data of a store that holds a [`Guard`].
pub trait HasGuard: WasiView {
    /// Returns the guard together with the store's resource table.
    fn guard(&mut self) -> GuardView<'_>;
}

/// Links the guarded `wasi:filesystem/types` and `wasi:filesystem/preopens` with their asynchronous
/// traits.
///
/// # Errors
///
/// Fails if the two interfaces are linked already, unless the linker allows shadowing.
pub fn add_to_linker<T: HasGuard + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    types::add_to_linker::<T, Guarded>(linker, T::guard)?;
    preopens::add_to_linker::<T, Guarded>(linker, T::guard)
}

/// The marker type for the linked host traits.
struct Guarded;

impl HasData for Guarded {
    type Data<'a> = GuardView<'a>;
}
