//! The data of one store: everything that one call can reach.

use super::client_requests::ClientRequests;
use super::limiter::Limiter;
use super::messages::Messages;
use super::wasi_ctx::LazyWasiCtx;
use crate::sandbox::limits;
use palisade_wasi_fs::{Filesystem, FilesystemView, HasFilesystem};
use std::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtxView, WasiView};
use wasmtime_wasi_io::IoView;

/// The data in the store of one call.
pub(crate) struct State {
    pub(crate) wasi_ctx: LazyWasiCtx,
    table: ResourceTable,
    pub(crate) filesystem: Filesystem,
    pub(crate) limiter: Limiter,
    pub(crate) messages: Messages,
    pub(crate) client_requests: ClientRequests,
    pub(crate) deadline: Instant,
    /// The size of the data that one host call may copy out of the guest, in bytes.
    pub(crate) hostcall_data: usize,
    /// The guest has looked for the network, which no guest has.
    pub(crate) misses_network: bool,
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
            deadline,
            hostcall_data: limits::HOSTCALL_DATA as usize,
            misses_network: false,
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

    /// Replaces the WASI context.
    pub(crate) fn with_wasi_ctx(self, wasi_ctx: LazyWasiCtx) -> Self {
        Self { wasi_ctx, ..self }
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
