//! The data of one store: everything that one call can reach.

use super::client_requests::ClientRequests;
use super::limiter::Limiter;
use super::messages::Messages;
use super::refusals::{PowerRefused, Refusals};
use super::tool_calls::ToolCalls;
use super::wasi_ctx::LazyWasiCtx;
use crate::sandbox::limits;
use palisade_wasi_fs::{Filesystem, FilesystemView, HasFilesystem};
use std::any::Any;
use std::fmt;
use std::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtxView, WasiView};
use wasmtime_wasi_io::IoView;

/// The data in the store of one call.
pub struct State {
    pub(crate) wasi_ctx: LazyWasiCtx,
    table: ResourceTable,
    pub(crate) filesystem: Filesystem,
    pub(crate) limiter: Limiter,
    pub(crate) messages: Messages,
    pub(crate) client_requests: ClientRequests,
    /// The calls of other tools, for a guest that may make any.
    pub(super) tool_calls: Option<Box<ToolCalls>>,
    pub(crate) deadline: Instant,
    /// The size of the data that one host call may copy out of the guest, in bytes.
    pub(crate) hostcall_data: usize,
    /// The guest has looked for the network, which no guest has.
    pub(crate) misses_network: bool,
    /// The data of powers, for a plugin that has any.
    powers: Option<Box<dyn Any + Send>>,
    refusals: Option<Refusals>,
}

impl State {
    /// Creates the data of a call. The default is deny: file access comes only from `filesystem`,
    /// and everything else from [`LazyWasiCtx`].
    pub(crate) fn new(
        filesystem: Filesystem,
        limiter: Limiter,
        messages: Messages,
        client_requests: ClientRequests,
        deadline: Instant,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::HANDLES);
        Self {
            wasi_ctx: LazyWasiCtx::default(),
            table,
            filesystem,
            limiter,
            messages,
            client_requests,
            tool_calls: None,
            deadline,
            hostcall_data: limits::HOSTCALL_DATA as usize,
            misses_network: false,
            powers: None,
            refusals: None,
        }
    }

    /// Closes all files. May block for long, or forever, where the file system hangs.
    pub(crate) fn close_files(&mut self) {
        self.table = ResourceTable::new();
        self.filesystem.close();
    }

    /// Sets the size of the data that one host call may copy out of the guest, in bytes.
    pub(crate) fn with_hostcall_data(self, hostcall_data: usize) -> Self {
        Self { hostcall_data, ..self }
    }

    /// Adds the data of powers, and the refusals that they note.
    pub(crate) fn with_powers(self, data: Box<dyn Any + Send>, refusals: Refusals) -> Self {
        Self { powers: Some(data), refusals: Some(refusals), ..self }
    }

    /// Adds the calls of other tools.
    pub(crate) fn with_tool_calls(self, calls: Option<ToolCalls>) -> Self {
        Self { tool_calls: calls.map(Box::new), ..self }
    }

    /// Returns the first refusal of the powers.
    pub(crate) fn refused_power(&self) -> Option<PowerRefused> {
        self.refusals.as_ref().and_then(Refusals::first)
    }

    /// Returns the resource table and the data of the powers. Data that is missing or of another
    /// type, which would be a fault of the host, is replaced by the default, which has no power.
    pub fn powers<T: Default + Send + 'static>(&mut self) -> (&mut ResourceTable, &mut T) {
        if !self.powers.as_ref().is_some_and(|data| data.is::<T>()) {
            self.powers = Some(Box::<T>::default());
        }
        match self.powers.as_mut().and_then(|data| data.downcast_mut()) {
            Some(data) => (&mut self.table, data),
            None => unreachable!("the data is of this type"),
        }
    }

    /// Replaces the WASI context.
    pub(crate) fn with_wasi_ctx(self, wasi_ctx: LazyWasiCtx) -> Self {
        Self { wasi_ctx, ..self }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl IoView for State {
    fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: self.wasi_ctx.get(), table: &mut self.table }
    }
}

impl HasFilesystem for State {
    fn filesystem(&mut self) -> FilesystemView<'_> {
        FilesystemView { filesystem: &mut self.filesystem, table: &mut self.table }
    }
}
