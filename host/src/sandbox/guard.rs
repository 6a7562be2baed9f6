//! The guarded `wasi:filesystem`: the one place where a guest's file operation becomes a system call.
//!
//! It replaces wasmtime-wasi's implementation whole on Unix, because file operations run inline, on the thread of the call: there, an open that
//! blocks would hold the thread for good, and no deadline could end it. So every open is non-blocking and checked by type, every path is resolved
//! beneath the mount before anything is done with it (`direct/locate.rs`), every host call is bounded, and every byte and entry is counted ([`ledger`]).

#[cfg(unix)]
mod direct;
mod errors;
mod file;
mod held;
mod journal;
mod keeper;
mod ledger;
mod path;
mod positioned;
#[cfg(any(not(unix), test))]
mod stock;
mod streams;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

#[cfg(unix)]
pub(crate) use direct::Mount;
pub(crate) use errors::Refusal;
pub(crate) use held::PluginFiles;
pub(crate) use ledger::{Exhausted, Quotas};
#[cfg(not(unix))]
pub(crate) use stock::Mount;

use crate::workspace::Rules;
#[cfg(unix)]
use direct::Root;
use errors::Fault;
use ledger::Ledger;
#[cfg(not(unix))]
use stock::Root;

/// The name under which a guest finds its one directory. Relative paths of a guest resolve against it, too: wasi-libc strips the slash of both.
pub(crate) const PREOPEN_NAME: &str = "/";

/// What a call may do to the mounted directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Look and read. Whatever would change a file, a directory or their metadata is refused with not-permitted.
    ReadOnly,
    /// Everything but symbolic links, which no guest may create.
    ReadWrite,
}

impl Access {
    /// Refuses whatever changes something, unless the mount may be written to.
    fn check_writable(self) -> Result<(), Fault> {
        match self {
            Self::ReadWrite => Ok(()),
            Self::ReadOnly => Err(Fault::Refused(Refusal::ReadOnly)),
        }
    }
}

/// The file system of one call: what is mounted, what has been used up, and what happened.
pub(crate) struct Guard {
    root: Option<Root>,
    #[cfg_attr(not(unix), allow(dead_code, reason = "the stock layer has one name for all"))]
    name: Cow<'static, str>,
    access: Access,
    ledger: Arc<Ledger>,
}

impl Guard {
    /// A guard for one call of the plugin whose open files are counted there.
    pub(crate) fn new(mount: (&Mount, Access, Arc<Rules>), quotas: Quotas, files: &PluginFiles) -> Self {
        let (mount, access, rules) = mount;
        let ledger = Ledger::new(quotas, Some(rules), files.clone());
        Self { root: Some(mount.root()), name: PREOPEN_NAME.into(), access, ledger: Arc::new(ledger) }
    }

    /// A guard for a call without a mount: the guest finds no directory, and so can name no file at all.
    pub(crate) fn closed(files: &PluginFiles) -> Self {
        let ledger = Ledger::new(Quotas::default(), None, files.clone());
        Self { root: None, name: PREOPEN_NAME.into(), access: Access::ReadOnly, ledger: Arc::new(ledger) }
    }

    /// Lets go of the mounted directory.
    pub(crate) fn close(&mut self) {
        self.root = None;
    }

    /// With another name for the directory, for guests of others that look for that.
    #[cfg(test)]
    pub(crate) fn named(self, name: String) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Whether this layer has refused something in this call.
    #[cfg(test)]
    pub(crate) fn refused(&self) -> bool {
        self.refusal().is_some()
    }

    /// The first thing that this layer has refused in this call, and why. What the operating system itself refused, such as a file without read
    /// permission, does not count.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.ledger.refusal()
    }

    /// How many bytes of files the guest has read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.ledger.bytes_read()
    }

    /// How many bytes the guest has written to files. Holes that it left count towards the quota, but not here.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.ledger.bytes_written()
    }

    /// The first quota that the guest ran into.
    pub(crate) fn exhausted(&self) -> Option<Exhausted> {
        self.ledger.exhausted()
    }

    /// The paths that were really changed, relative to the mount, in the order of their first change, each once. Symbolic links are resolved, and
    /// what the call has made and removed again is left out. At most
    /// [`journal::MAX_PATHS`] paths; [`Guard::modified_unlisted`] says how many changes found no place.
    pub(crate) fn modified(&self) -> Vec<String> {
        self.ledger.modified()
    }

    /// Whether the guest has changed anything so far, or written to what it has made and removed again.
    pub(crate) fn has_changed_anything(&self) -> bool {
        self.bytes_written() > 0 || self.modified_unlisted() > 0 || !self.modified().is_empty()
    }

    /// Removes the temporary files of a call that was stopped half-way: those that it has made under the name `.palisade-`, sixteen hexadecimal digits,
    /// `.tmp`, and has not renamed. What cannot be removed stays in [`Guard::modified`].
    #[cfg(unix)]
    pub(crate) fn tidy(&self) {
        let Some(root) = &self.root else { return };
        for path in self.ledger.temporaries() {
            if let Err(error) = direct::unlink(root, &path, &self.ledger) {
                tracing::debug!("a temporary file was left behind: {error}");
            }
        }
    }

    /// The stock layer removes nothing without the guest.
    #[cfg(not(unix))]
    pub(crate) fn tidy(&self) {}

    /// How many changes are missing from [`Guard::modified`] because it was full.
    pub(crate) fn modified_unlisted(&self) -> u64 {
        self.ledger.modified_unlisted()
    }
}

/// What the guarded file system needs of a store in order to answer one host call.
pub(crate) struct GuardView<'a> {
    /// The guard of the call.
    pub(crate) guard: &'a mut Guard,
    /// The table that holds the call's resources, the same that `WasiView::ctx` gives out.
    pub(crate) table: &'a mut ResourceTable,
}

/// A store's data that holds a [`Guard`].
pub(crate) trait HasGuard: WasiView {
    /// Gives access to the guard, together with the store's resource table.
    fn guard(&mut self) -> GuardView<'_>;
}

/// Links the guarded `wasi:filesystem/types` and `wasi:filesystem/preopens`, asynchronous trait set.
///
/// # Errors
///
/// Fails where the two interfaces are linked already, unless the linker allows shadowing.
pub(crate) fn add_to_linker<T: HasGuard + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    types::add_to_linker::<T, Guarded>(linker, view)?;
    preopens::add_to_linker::<T, Guarded>(linker, view)
}

/// Marks the type that implements the linked traits.
struct Guarded;

#[cfg(unix)]
fn view<T: HasGuard>(data: &mut T) -> GuardView<'_> {
    data.guard()
}

#[cfg(not(unix))]
fn view<T: HasGuard>(data: &mut T) -> stock::StockView<'_> {
    let GuardView { guard, table } = data.guard();
    stock::StockView { root: guard.root.as_ref(), access: guard.access, ledger: &guard.ledger, table }
}

#[cfg(unix)]
impl HasData for Guarded {
    type Data<'a> = GuardView<'a>;
}

#[cfg(not(unix))]
impl HasData for Guarded {
    type Data<'a> = stock::StockView<'a>;
}
