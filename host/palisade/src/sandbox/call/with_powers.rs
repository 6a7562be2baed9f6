//! Adds the powers of a plugin to the state of a call.

use crate::execution::account::Account;
use crate::execution::share::Owner;
use crate::sandbox::powers::{PluginPowers, PoweredCall, Refusals};
use crate::sandbox::run::{LazyWasiCtx, State};
use crate::tool::SideEffects;
use std::sync::Arc;
use wasmtime_wasi::WasiCtx;

/// Adds the powers of the plugin to the state of a call of this class and owner.
pub(super) fn with_powers(
    state: State,
    powers: &Arc<dyn PluginPowers>,
    (class, owner): (SideEffects, Owner),
    account: &Account,
) -> State {
    let refusals = Refusals::default();
    let call = PoweredCall { class, account: account.clone(), refusals: refusals.clone(), owner };
    let data = powers.begin(call);
    let powers = powers.clone();
    let context = move || {
        let mut context = WasiCtx::builder();
        context.envs(&powers.environment());
        context
    };
    state.with_powers(data, refusals).with_wasi_ctx(LazyWasiCtx::with_builder(context))
}
