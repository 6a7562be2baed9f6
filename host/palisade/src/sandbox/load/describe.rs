//! The description of a plugin: the host asks for it twice, in a store without files and with
//! frozen clocks.

mod check;
mod frozen;
mod functions;
mod offer;
mod types_error;

pub(super) use check::{checked, memory};
pub(super) use functions::of_functions;

use super::error::{PluginRefused, world_mismatch};
use crate::execution::account::{Account, MemoryLimits};
use crate::execution::clock::CallClock;
use crate::execution::share::Share;
use crate::execution::{FirstTick, OwnerShares};
use crate::sandbox::bindings::PluginIndices;
use crate::sandbox::bindings::exports::palisade::tool::tool as wit;
use crate::sandbox::description::Description;
use crate::sandbox::handle::Sandbox;
use crate::sandbox::limits;
use crate::sandbox::powers::{PluginPowers, PoweredCall, Refusals, whole_memory};
use crate::sandbox::run::{
    ClientRequests, ExitReason, LazyWasiCtx, Limiter, Linked, Messages, RunBounds, State, Stop,
    new_store, run_bounded, take_sandbox,
};
use crate::tool::offer::Offer;
use crate::tool::schema::Building;
use crate::tool::{Definition, Digest, SideEffects};
use frozen::frozen;
use offer::describe_offer;
use palisade_wasi_fs::Filesystem;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use types_error::TypeMismatch;
use wasmtime::Store;

/// The description of a plugin, with the checked definitions of its tools.
pub(super) struct Described {
    pub(super) description: Description,
    pub(super) definitions: Vec<Definition>,
}

impl Sandbox {
    /// Asks a plugin for its description. Blocks; must not be called on a thread of a running tokio
    /// runtime.
    pub(super) fn describe(
        &self,
        linked: &Linked,
        plugin: Digest,
        imports: Vec<String>,
        powers: Option<&dyn PluginPowers>,
    ) -> Result<Described, PluginRefused> {
        let owner = OwnerShares::new(plugin);
        let loading = linked.runtime.loading.share(plugin);
        let fault = |error: std::io::Error| PluginRefused::Describe(error.to_string());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(fault)?;
        let first = runtime.block_on(self.ask(linked, &owner, &loading, powers))?;
        let second = runtime.block_on(self.ask(linked, &owner, &loading, powers))?;
        // The generated types do not implement `PartialEq`.
        if format!("{first:?}") != format!("{second:?}") {
            return Err(PluginRefused::Unstable);
        }
        let Answer { tools, offer } = first;
        let description = Description { imports, tools, offer, left_out: Vec::new() };
        let definitions = checked(&description, Building::Now)?;
        Ok(Described { description, definitions })
    }

    async fn ask(
        &self,
        linked: &Linked,
        owner: &OwnerShares,
        loading: &Arc<Share>,
        powers: Option<&dyn PluginPowers>,
    ) -> Result<Answer, PluginRefused> {
        let uncancelled = CancellationToken::new();
        let patience = limits::QUEUE_TIMEOUT;
        let _sandbox = take_sandbox(loading, linked.units, &uncancelled, patience)
            .await
            .map_err(|exit| PluginRefused::Describe(reason(exit)))?;
        let clock = CallClock::new(limits::DESCRIBE_TIMEOUT);
        let state = describing_state(linked, owner, clock.deadline().into_std(), powers)?;
        let signals = state.messages.signals().clone();
        let mut store = new_store(&linked.runtime.engine, state);
        let _running = linked.runtime.running();
        let bounds = RunBounds {
            clock: &clock,
            cancel: &uncancelled,
            signals,
            turns: &owner.turns,
            first_tick: FirstTick::Free,
        };
        match run_bounded(answer(linked, &mut store), &bounds).await {
            Ok(answer) => Ok(answer),
            Err(Stop::Error(error)) if error.is::<TypeMismatch>() => Err(world_mismatch(&error)),
            Err(stop) => Err(PluginRefused::Describe(reason(stop.into_exit_reason(&store)))),
        }
    }
}

/// The answer of a plugin to the question for its tools, resources and prompts.
#[derive(Debug)]
struct Answer {
    tools: Vec<wit::Definition>,
    offer: Offer,
}

async fn answer(linked: &Linked, store: &mut Store<State>) -> wasmtime::Result<Answer> {
    let pre = linked.instance_pre();
    let instance = pre.instantiate_async(&mut *store).await?;
    store.data_mut().limiter.begin();
    let plugin = PluginIndices::new(pre).and_then(|indices| indices.load(&mut *store, &instance));
    let plugin = plugin.map_err(|error| TypeMismatch::wrap(&error))?;
    let tools = plugin.palisade_tool_tool().call_definitions(&mut *store).await?;
    Ok(Answer { tools, offer: describe_offer(pre, &instance, store).await? })
}

/// Returns the state of a guest without files, client or real time.
fn describing_state(
    linked: &Linked,
    owner: &OwnerShares,
    deadline: Instant,
    powers: Option<&dyn PluginPowers>,
) -> Result<State, PluginRefused> {
    // Charged to the memory of all calls, but not refused for the memory that other calls hold.
    let account = Account::new(MemoryLimits { call: limits::MEMORY, total: u64::MAX });
    account.assign(&owner.memory).map_err(|why| PluginRefused::Describe(why.to_string()))?;
    let runtime = &linked.runtime;
    let limiter = Limiter::new(limits::MEMORY, runtime.kind.allocation, &account)
        .with_whole(whole_memory(runtime, powers))
        .map_err(|why| PluginRefused::Describe(why.to_string()))?;
    let state = State::new(
        Filesystem::closed(),
        limiter,
        Messages::silent(),
        ClientRequests::without_client(),
        deadline,
    );
    let state = state.with_wasi_ctx(LazyWasiCtx::with_builder(frozen));
    let Some(powers) = powers else { return Ok(state) };
    // Class none has no power: a description depends on nothing outside of the plugin.
    let (refusals, owner) = (Refusals::default(), owner.descriptors.owner().clone());
    let call = PoweredCall { class: SideEffects::None, account, refusals, owner };
    Ok(state.with_powers(powers.begin(call), Refusals::default()))
}

fn reason(exit: ExitReason) -> String {
    match exit {
        ExitReason::Deadline | ExitReason::Cancelled => {
            format!(
                "it did not answer within {}",
                humantime::format_duration(limits::DESCRIBE_TIMEOUT)
            )
        }
        ExitReason::Limit(limit, value) => format!("it reached the limit `{limit}` of {value}"),
        ExitReason::Client(_) => {
            "it needs a client, and there is none while it is described".to_owned()
        }
        ExitReason::Trap(crash) => crash.message,
    }
}
