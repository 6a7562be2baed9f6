//! The store of one call, with every limit from its creation.

use super::interrupt::Interrupted;
use super::state::State;
use crate::sandbox::limits;
use std::time::Instant;
use wasmtime::{Engine, Store, StoreContextMut, UpdateDeadline};

/// Creates the store of one call, with a deadline, a limiter and a bound on handles from the start.
pub(crate) fn new_store(engine: &Engine, state: State) -> Store<State> {
    let hostcall_data = state.hostcall_data;
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_hostcall_fuel(hostcall_data);
    store.set_max_component_handles(limits::COMPONENT_HANDLES);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(at_tick);
    store
}

#[allow(clippy::needless_pass_by_value, reason = "wasmtime calls it with the context by value")]
fn at_tick(store: StoreContextMut<'_, State>) -> wasmtime::Result<UpdateDeadline> {
    let state = store.data();
    let now = Instant::now();
    if now >= state.deadline {
        return Err(Interrupted::Deadline.into());
    }
    let signals = state.messages.signals();
    // A guest that polls for cancellation gets a grace period, in which it may still compute.
    if state.messages.cancel().is_cancelled() && !signals.polls_for_cancellation() {
        return Err(Interrupted::Cancelled.into());
    }
    Ok(UpdateDeadline::YieldCustom(1, signals.note_tick()))
}
