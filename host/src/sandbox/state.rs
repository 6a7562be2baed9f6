//! The data of one store: everything that one call may touch.

use super::ask::Asking;
use super::guard::{Guard, GuardView, HasGuard};
use super::limiter::Limiter;
use super::limits;
use super::stdio::Captured;
use super::talk::Talk;
use std::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

/// What the store of one call holds.
pub(super) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    pub(super) guard: Guard,
    pub(super) limiter: Limiter,
    pub(super) talk: Talk,
    pub(super) asking: Asking,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    pub(super) deadline: Instant,
}

impl State {
    /// Deny is the default: no environment, no arguments, closed input, captured output, no network, and of files only what `guard` holds.
    pub(super) fn new(mut wasi: WasiCtxBuilder, guard: Guard, limiter: Limiter, talk: Talk, deadline: Instant) -> Self {
        let (stdout, stderr) = (Captured::default(), Captured::default());
        wasi.stdout(stdout.clone())
            .stderr(stderr.clone())
            .max_random_size(limits::RANDOM)
            // File operations run where the guest runs. The guard is what makes that safe: nothing that it opens can block.
            .allow_blocking_current_thread(true);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::HANDLES);
        let asking = Asking::nobody();
        Self { wasi: wasi.build(), table, guard, limiter, talk, asking, stdout, stderr, deadline }
    }

    /// With a client that the guest may ask.
    pub(super) fn asking(self, asking: Asking) -> Self {
        Self { asking, ..self }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl HasGuard for State {
    fn guard(&mut self) -> GuardView<'_> {
        GuardView { guard: &mut self.guard, table: &mut self.table }
    }
}
