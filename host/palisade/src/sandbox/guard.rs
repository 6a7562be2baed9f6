//! The guarded `wasi:filesystem`: every file operation of a guest becomes a system call here.
//!
//! It replaces the implementation of wasmtime-wasi entirely. File operations run inline, on
//! the thread of the call, and epoch interruption cannot end a blocked system call. Therefore every
//! open is non-blocking and checks the file type, every path is resolved beneath the mount point
//! first (`direct/locate.rs`), every host call is bounded, and every byte and entry is counted
//! ([`ledger`]).

mod budget;
mod direct;
mod errors;
mod file;
mod held;
mod journal;
mod keeper;
mod ledger;
mod path;
mod positioned;
mod streams;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

#[cfg(test)]
pub(crate) use budget::DescriptorLimit;
pub(crate) use budget::{NoDescriptor, ResourceBudget};
pub(crate) use direct::Mount;
pub(crate) use errors::Refusal;
pub(crate) use ledger::{Exhausted, Quotas};

use crate::workspace::Rules;
use direct::Root;
use errors::Fault;
use ledger::Ledger;

/// The name of the guest's only preopened directory. Relative paths resolve against it as well,
/// because wasi-libc strips the leading slash of both.
pub(crate) const PREOPEN_NAME: &str = "/";

/// The access rights of a call to the mounted directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading only. Every operation that would change a file, a directory or metadata fails with
    /// not-permitted.
    ReadOnly,
    /// Everything except the creation of symbolic links, which no guest may do.
    ReadWrite,
}

impl Access {
    /// Refuses a change, unless the mount is writable.
    fn check_writable(self) -> Result<(), Fault> {
        match self {
            Self::ReadWrite => Ok(()),
            Self::ReadOnly => Err(Fault::Refused(Refusal::ReadOnly)),
        }
    }
}

/// The bounds of one call, and the name of its preopened directory.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    quotas: Quotas,
    budget: Arc<dyn ResourceBudget>,
    preopen_name: Cow<'static, str>,
}

impl Options {
    /// Creates the options of a call with default quotas. The call's file descriptors, and the
    /// memory of its change log, are counted in `budget`.
    pub(crate) fn new(budget: Arc<dyn ResourceBudget>) -> Self {
        Self { quotas: Quotas::default(), budget, preopen_name: PREOPEN_NAME.into() }
    }

    /// Sets the quotas.
    #[cfg(test)]
    pub(crate) fn with_quotas(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }

    /// Sets another name of the preopened directory, for guests that expect one.
    #[cfg(test)]
    pub(crate) fn with_preopen_name(self, name: String) -> Self {
        Self { preopen_name: name.into(), ..self }
    }
}

/// Default quotas, and a budget that no other call shares.
#[cfg(test)]
impl Default for Options {
    fn default() -> Self {
        Self::new(Arc::new(DescriptorLimit::default()))
    }
}

/// The file system of one call: its mount, its usage and its change log.
pub(crate) struct Guard {
    root: Option<Root>,
    name: Cow<'static, str>,
    access: Access,
    ledger: Arc<Ledger>,
}

impl Guard {
    /// Creates the guard of one call.
    pub(crate) fn new(mount: &Mount, access: Access, rules: Arc<Rules>, options: Options) -> Self {
        let Options { quotas, budget, preopen_name } = options;
        let ledger = Ledger::new(quotas, Some(rules), Some(budget));
        Self { root: Some(mount.root()), name: preopen_name, access, ledger: Arc::new(ledger) }
    }

    /// Creates the guard of a call without a mount: the guest has no preopened directory, and so
    /// cannot name any file.
    pub(crate) fn closed() -> Self {
        let ledger = Ledger::new(Quotas::default(), None, None);
        Self {
            root: None,
            name: PREOPEN_NAME.into(),
            access: Access::ReadOnly,
            ledger: Arc::new(ledger),
        }
    }

    /// Releases the mounted directory.
    pub(crate) fn close(&mut self) {
        self.root = None;
    }

    /// Returns whether this layer has refused an operation in this call.
    #[cfg(test)]
    pub(crate) fn refused(&self) -> bool {
        self.refusal().is_some()
    }

    /// Returns the first refusal of this layer in this call. Errors of the operating system, such
    /// as a file without read permission, do not count.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.ledger.refusal()
    }

    /// Returns the number of bytes that the guest has read from files.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.ledger.bytes_read()
    }

    /// Returns the number of bytes that the guest has written to files. Holes count towards the
    /// quota, but not here.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.ledger.bytes_written()
    }

    /// Returns the first quota that the guest exceeded.
    pub(crate) fn exhausted(&self) -> Option<Exhausted> {
        self.ledger.exhausted()
    }

    /// Returns the changed paths relative to the mount, without duplicates, in the order of their
    /// first change. Symbolic links are resolved, and entries that the call created and removed
    /// again are omitted. The list holds at most [`journal::MAX_PATHS`] paths;
    /// [`Guard::modified_unlisted`] counts the changes beyond that.
    pub(crate) fn modified(&self) -> Vec<String> {
        self.ledger.modified()
    }

    /// Returns whether the guest has changed anything so far, including files that it created and
    /// removed again.
    pub(crate) fn has_changed_anything(&self) -> bool {
        self.bytes_written() > 0 || self.modified_unlisted() > 0 || !self.modified().is_empty()
    }

    /// Removes the temporary files of an interrupted call: the files that the call created, and has
    /// not renamed, under a name that `is_temporary` accepts. Files that cannot be removed stay in
    /// [`Guard::modified`].
    pub(crate) fn tidy(&self, is_temporary: impl Fn(&str) -> bool) {
        let Some(root) = &self.root else { return };
        for path in self.ledger.created(is_temporary) {
            if let Err(error) = direct::unlink(root, &path, &self.ledger) {
                tracing::debug!("a temporary file was left behind: {error}");
            }
        }
    }

    /// Returns the number of changes that did not fit into [`Guard::modified`].
    pub(crate) fn modified_unlisted(&self) -> u64 {
        self.ledger.modified_unlisted()
    }
}

/// The parts of a store that the guarded file system needs to serve one host call.
pub(crate) struct GuardView<'a> {
    /// The guard of the call.
    pub(crate) guard: &'a mut Guard,
    /// The resource table of the call, the same one that `WasiView::ctx` returns.
    pub(crate) table: &'a mut ResourceTable,
}

/// The data of a store that holds a [`Guard`].
pub(crate) trait HasGuard: WasiView {
    /// Returns the guard together with the store's resource table.
    fn guard(&mut self) -> GuardView<'_>;
}

/// Links the guarded `wasi:filesystem/types` and `wasi:filesystem/preopens` with their asynchronous
/// traits.
///
/// # Errors
///
/// Fails if the two interfaces are linked already, unless the linker allows shadowing.
pub(crate) fn add_to_linker<T: HasGuard + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    types::add_to_linker::<T, Guarded>(linker, T::guard)?;
    preopens::add_to_linker::<T, Guarded>(linker, T::guard)
}

/// The marker type for the linked host traits.
struct Guarded;

impl HasData for Guarded {
    type Data<'a> = GuardView<'a>;
}
