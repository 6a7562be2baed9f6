//! The data of one store: everything that one call can reach.

use super::ask::Asking;
use super::limiter::Limiter;
use super::limits;
use super::surroundings::Surroundings;
use super::talk::Talk;
use palisade_wasi_fs::{Filesystem, FilesystemView, HasFilesystem};
use std::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtxView, WasiView};
use wasmtime_wasi_io::IoView;

/// The data in the store of one call.
pub(super) struct State {
    pub(super) surroundings: Surroundings,
    table: ResourceTable,
    pub(super) filesystem: Filesystem,
    pub(super) limiter: Limiter,
    pub(super) talk: Talk,
    pub(super) asking: Asking,
    pub(super) deadline: Instant,
}

impl State {
    /// Creates the data of a call. The default is deny: file access comes only from `filesystem`, and
    /// everything else from [`Surroundings`].
    pub(super) fn new(
        filesystem: Filesystem,
        limiter: Limiter,
        talk: Talk,
        asking: Asking,
        deadline: Instant,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::HANDLES);
        Self {
            surroundings: Surroundings::default(),
            table,
            filesystem,
            limiter,
            talk,
            asking,
            deadline,
        }
    }

    /// Closes all files. May block for long, or forever, where the file system hangs.
    pub(super) fn close_files(&mut self) {
        self.table = ResourceTable::new();
        self.filesystem.close();
    }

    /// Replaces the surroundings of a call by others.
    pub(super) fn within(self, surroundings: Surroundings) -> Self {
        Self { surroundings, ..self }
    }
}

impl IoView for State {
    fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: self.surroundings.wasi(), table: &mut self.table }
    }
}

impl HasFilesystem for State {
    fn filesystem(&mut self) -> FilesystemView<'_> {
        FilesystemView { filesystem: &mut self.filesystem, table: &mut self.table }
    }
}
