//! The description of a plugin: the host asks for it twice, in a store without files and with
//! frozen clocks.

use super::ask::Asking;
use super::bindings::PluginIndices;
use super::bindings::exports::palisade::tool::tool as wit;
use super::ended::Ended;
use super::limiter::Limiter;
use super::linked::Linked;
use super::prepare::{PluginRefused, brief};
use super::run::{Stop, bounded, slot, store};
use super::state::State;
use super::surroundings::Surroundings;
use super::talk::Talk;
use super::turns::Bounds;
use super::{Sandbox, convert, limits, offer};
use crate::execution::account::{Account, MemoryLimits};
use crate::execution::clock::CallClock;
use crate::execution::share::Share;
use crate::execution::{FirstTick, Owner};
use crate::tool::offer::Offer;
use crate::tool::schema::Building;
use crate::tool::{Definition, Digest};
use palisade_wasi_fs::Filesystem;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wasmtime_wasi::random::Deterministic;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx};

/// A plugin's own description: its tools, and its resources and prompts.
pub(super) type Described = (Vec<wit::Definition>, Offer);

/// The maximum number of tools of one plugin.
const MAX_TOOLS: usize = 256;

impl Sandbox {
    /// Asks a plugin for its description, and returns it as given and as checked definitions.
    /// Blocks; must not be called on a thread of a running tokio runtime.
    pub(super) fn describe(
        &self,
        pre: &Linked,
        plugin: Digest,
    ) -> Result<(Described, Vec<Definition>), PluginRefused> {
        let owner = Owner::of(plugin);
        let loading = self.runtime.loading.share(plugin);
        let fault = |error: std::io::Error| PluginRefused::Describe(error.to_string());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(fault)?;
        let first = runtime.block_on(self.ask(pre, &owner, &loading))?;
        let second = runtime.block_on(self.ask(pre, &owner, &loading))?;
        // The generated types do not implement `PartialEq`.
        if format!("{first:?}") != format!("{second:?}") {
            return Err(PluginRefused::Unstable);
        }
        let definitions = checked(&first, Building::Now)?;
        Ok((first, definitions))
    }

    async fn ask(
        &self,
        pre: &Linked,
        owner: &Owner,
        loading: &Arc<Share>,
    ) -> Result<Described, PluginRefused> {
        let patient = CancellationToken::new();

        let _slot = slot(loading, pre.units, &patient, limits::QUEUE_TIMEOUT)
            .await
            .map_err(|ended| PluginRefused::Describe(reason(ended)))?;
        let clock = CallClock::new(limits::DESCRIBE_TIMEOUT);
        let deadline = clock.deadline().into_std();
        let talk = Talk::silent();
        let signs = talk.signs().clone();
        // Charged to the memory of all calls, but not refused for the memory that other calls hold.
        let account = Account::new(MemoryLimits { call: limits::MEMORY, total: u64::MAX });
        account.assign(&owner.memory).map_err(|why| PluginRefused::Describe(why.to_string()))?;
        let state = State::new(
            Filesystem::closed(),
            Limiter::new(limits::MEMORY, self.runtime.allocation, &account),
            talk,
            Asking::nobody(),
            deadline,
        );
        let mut store = store(&self.runtime, state.within(Surroundings::by(frozen)));
        let _running = self.runtime.running();
        let work = async {
            let instance = pre.instance_pre().instantiate_async(&mut store).await?;
            store.data_mut().limiter.begin();
            let plugin = PluginIndices::new(pre.instance_pre())
                .and_then(|indices| indices.load(&mut store, &instance));
            let plugin = plugin.map_err(|error| OtherTypes::error(&error))?;
            let tools = plugin.palisade_tool_tool().call_definitions(&mut store).await?;
            Ok((tools, offer::described(pre.instance_pre(), &instance, &mut store).await?))
        };
        let bounds = Bounds {
            clock: &clock,
            cancel: &patient,
            signs,
            turns: &owner.turns,
            first_tick: FirstTick::Free,
        };
        match bounded(work, &bounds).await {
            Ok(described) => Ok(described),
            Err(Stop::Error(error)) if error.is::<OtherTypes>() => {
                Err(super::prepare::world(&error))
            }
            Err(stop) => Err(PluginRefused::Describe(reason(stop.into_ended(&store)))),
        }
    }
}

/// The error of a plugin whose functions have the right names but other types. Only an instance
/// reveals it.
#[derive(Debug, thiserror::Error)]
#[error("the types of its functions are not those of the contract: {0}")]
pub(super) struct OtherTypes(String);

impl OtherTypes {
    pub(super) fn error(error: &wasmtime::Error) -> wasmtime::Error {
        wasmtime::Error::new(Self(brief(error)))
    }
}

fn reason(ended: Ended) -> String {
    match ended {
        Ended::Deadline | Ended::Cancelled => {
            format!(
                "it did not answer within {}",
                humantime::format_duration(limits::DESCRIBE_TIMEOUT)
            )
        }
        Ended::Limit(limit, value) => format!("it reached the limit `{limit}` of {value}"),
        Ended::Parted(_) => "it needs a client, and there is none while it is described".to_owned(),
        Ended::Trap(crash) => crash.message,
    }
}

/// Checks a plugin's description and returns its tools.
pub(super) fn checked(
    described: &Described,
    building: Building,
) -> Result<Vec<Definition>, PluginRefused> {
    let (tools, offer) = described;
    offer.check()?;
    if tools.is_empty() || tools.len() > MAX_TOOLS {
        return Err(PluginRefused::Count(tools.len()));
    }
    let mut budget = SchemaBudget::default();
    let mut definitions = Vec::with_capacity(tools.len());
    for raw in tools {
        budget.charge_text(raw)?;
        let definition = convert::definition(raw, building)?;
        budget.charge_patterns(&definition)?;
        definitions.push(definition);
    }
    let mut names = HashSet::new();
    match definitions.iter().find(|definition| !names.insert(definition.name().clone())) {
        Some(twice) => Err(PluginRefused::TwiceNamed(twice.name().to_string())),
        None => Ok(definitions),
    }
}

/// The budget of all schemas of a plugin together. Each schema has bounds of its own, but a plugin
/// may have hundreds of schemas.
#[derive(Default)]
struct SchemaBudget {
    text: usize,
    count: usize,
    bytes: usize,
}

impl SchemaBudget {
    /// The size of four of the largest schemas, in bytes of JSON. Compiled, they take about a
    /// hundred times as much memory.
    const TEXT: usize = 1 << 20;
    /// Two patterns for each tool of a plugin with the maximum number of tools.
    const COUNT: usize = 512;
    /// The size of the compiled patterns of two of the largest schemas, in bytes.
    const BYTES: usize = 8 << 20;

    fn charge_text(&mut self, raw: &wit::Definition) -> Result<(), PluginRefused> {
        self.text += raw.input_schema.len() + raw.output_schema.as_ref().map_or(0, String::len);
        if self.text <= Self::TEXT {
            Ok(())
        } else {
            Err(PluginRefused::Schemas { bytes: Self::TEXT })
        }
    }

    fn charge_patterns(&mut self, definition: &Definition) -> Result<(), PluginRefused> {
        for schema in std::iter::once(definition.input_schema()).chain(definition.output_schema()) {
            let (count, bytes) = schema.pattern_cost();
            self.count += count;
            self.bytes += bytes;
        }
        let within = self.count <= Self::COUNT && self.bytes <= Self::BYTES;
        if within {
            Ok(())
        } else {
            Err(PluginRefused::Patterns { count: Self::COUNT, bytes: Self::BYTES })
        }
    }
}

/// Returns a WASI context without real time or randomness, so that a description cannot depend on
/// either.
fn frozen() -> wasmtime_wasi::WasiCtxBuilder {
    let mut wasi = WasiCtx::builder();
    wasi.wall_clock(Frozen)
        .monotonic_clock(Frozen)
        .secure_random(Deterministic::new(vec![0x5a]))
        .insecure_random(Deterministic::new(vec![0x5a]))
        .insecure_random_seed(0x5a);
    wasi
}

struct Frozen;

impl HostWallClock for Frozen {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl HostMonotonicClock for Frozen {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}
