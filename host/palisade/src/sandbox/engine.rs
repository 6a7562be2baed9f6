//! The one engine of the process, its allocator, and the epoch clock that interrupts guests.

use super::limits;
use super::state::State;
use crate::execution::account::has_room;
use crate::execution::owner;
use crate::execution::share::Pool;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;
use wasmtime::component::{Component, Linker};
use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig,
};

/// The time without a running guest after which the clock parks until the next call.
const IDLE: Duration = Duration::from_secs(1);
/// The number of ticks without a computing guest after which the clock slows down: guests that wait
/// need no ticks.
const QUIET_TICKS: u32 = 25;
/// The period of the clock while no guest computes. It bounds the delay of the first tick of the
/// next guest.
const SLOW_TICK: Duration = Duration::from_millis(10);
/// Memories in the pool for each sandbox unit. Compilers emit one, and two in a composed component.
const MEMORIES_PER_UNIT: u32 = 2;
/// Tables in the pool for each sandbox unit. A Python component has about 28.
const TABLES_PER_UNIT: u32 = 32;

/// The allocation of guest memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// From a pool that is reserved at the start: about 10 µs a call.
    Pooled,
    /// Mapped for each call, because the address space is too small for a pool: about 50 µs a call.
    OnDemand,
    /// As `OnDemand`, without room to grow, because the address space is too small for that as
    /// well. A memory that grows is copied.
    Scarce,
}

impl Allocation {
    /// Returns the address space that each memory reserves at its creation, in bytes. Up to this
    /// size a memory grows in place.
    pub(super) fn reservation(self) -> u64 {
        match self {
            Self::Pooled => limits::MAX_MEMORY,
            Self::OnDemand => limits::MEMORY,
            Self::Scarce => 0,
        }
    }

    /// Returns the allocation that the process has address space for, if there is no pool.
    fn without_pool() -> Self {
        /// The number of concurrent calls that must fit.
        const CALLS: usize = 16;
        let wanted = (Self::OnDemand.reservation() as usize).saturating_mul(CALLS);
        if has_room(wanted) { Self::OnDemand } else { Self::Scarce }
    }
}

/// The error of a machine that cannot run WebAssembly.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot start the WebAssembly engine: {0}")]
pub struct EngineError(pub(super) String);

/// The engine, and everything else that exists once per process.
pub(super) struct Runtime {
    pub(super) engine: Engine,
    pub(super) linker: Linker<State>,
    pub(super) allocation: Allocation,
    /// The pool of sandboxes for loading plugins.
    pub(super) loading: Pool,
    clock: Clock,
}

impl Runtime {
    /// Returns the runtime of the process, which is created at first use. There is only one,
    /// because types and code of two engines must never be mixed.
    pub(super) fn shared() -> Result<Arc<Self>, EngineError> {
        static SHARED: OnceLock<Result<Arc<Runtime>, EngineError>> = OnceLock::new();
        super::check_machine()?;
        SHARED.get_or_init(|| Self::caught_start().map(Arc::new)).clone()
    }

    /// Starts the runtime, and converts a panic to an error: on a machine that is short of a
    /// resource the engine may panic.
    fn caught_start() -> Result<Self, EngineError> {
        match std::panic::catch_unwind(Self::start) {
            Ok(started) => started.map_err(|error| EngineError(format!("{error:#}"))),
            Err(_) => Err(EngineError("it panicked; the log has the details".to_owned())),
        }
    }

    fn start() -> wasmtime::Result<Self> {
        let (engine, allocation) = match Engine::new(&pooled()) {
            Ok(engine) => (engine, Allocation::Pooled),
            Err(error) => {
                let allocation = Allocation::without_pool();
                tracing::info!(
                    "no pool of memory on this machine, allocating for each call ({allocation:?}): {error:#}"
                );
                (Engine::new(&on_demand(allocation))?, allocation)
            }
        };
        let linker = super::imports::linker(&engine)?;
        let clock = Clock::start(engine.weak())?;
        Ok(Self {
            engine,
            linker,
            allocation,
            loading: Pool::new(u64::from(limits::LOADING_SANDBOXES)),
            clock,
        })
    }

    /// Returns the number of sandbox units that calls hold now.
    pub(super) fn live(&self) -> u64 {
        owner::sandboxes().held()
    }

    /// Returns the number of sandbox units that a call of this component takes. They cover all that
    /// the component needs from the pool, so that an admitted call never finds the pool empty.
    pub(super) fn units(component: &Component) -> u64 {
        const MOST: u32 = (limits::MEMORIES as u32).div_ceil(MEMORIES_PER_UNIT);
        const { assert!(limits::TABLES as u32 <= MOST * TABLES_PER_UNIT) };
        let units = component.resources_required().map_or(MOST, |needed| {
            needed
                .num_memories
                .div_ceil(MEMORIES_PER_UNIT)
                .max(needed.num_tables.div_ceil(TABLES_PER_UNIT))
        });
        u64::from(units.clamp(1, MOST))
    }

    /// Keeps the clock ticking while the guard is alive.
    pub(super) fn running(&self) -> Running<'_> {
        // SeqCst here and in `tick`: either this thread sees `asleep`, or the clock sees `running`.
        self.clock.running.fetch_add(1, Ordering::SeqCst);
        if self.clock.asleep.load(Ordering::SeqCst) {
            self.clock.thread.unpark();
        }
        Running(&self.clock)
    }
}

/// Returns the configuration common to both allocators: the language features, and the settings
/// that determine the cost of a call.
fn base() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        // The tasks of the component model cost 3 to 4 µs a call, and a dozen advisories concern
        // them. Synchronous guests do not need them.
        .concurrency_support(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .wasm_exceptions(false)
        .gc_support(false)
        .wasm_threads(false)
        .shared_memory(false)
        .wasm_memory64(false)
        .wasm_backtrace_details(wasmtime::WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(16));
    config
}

fn pooled() -> Config {
    let live = limits::LIVE_SANDBOXES + limits::LOADING_SANDBOXES;
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(live)
        // Only a counter: an instance has no slot of its own in the pool.
        .total_core_instances(live * limits::INSTANCES as u32)
        .total_memories(live * MEMORIES_PER_UNIT)
        .total_tables(live * TABLES_PER_UNIT)
        .total_stacks(live)
        .max_core_instances_per_component(limits::INSTANCES as u32)
        .max_memories_per_component(limits::MEMORIES as u32)
        .max_tables_per_component(limits::TABLES as u32)
        .max_tables_per_module(limits::MODULE_TABLES)
        .max_core_instance_size(limits::INSTANCE_DATA)
        .max_component_instance_size(limits::INSTANCE_DATA)
        .table_elements(limits::ELEMENTS_PER_TABLE)
        .max_memory_size(limits::MAX_MEMORY as usize)
        .max_unused_warm_slots(live)
        // Memory up to these sizes is cleared in place when a call ends. The rest is returned to
        // the kernel, at the cost of page faults.
        .linear_memory_keep_resident(512 << 10)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = pooled_code();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Returns the part of the pool's configuration that compiled code depends on: the address space of
/// one memory.
fn pooled_code() -> Config {
    let mut config = base();
    config.memory_reservation(limits::MAX_MEMORY);
    config
}

/// Returns the configuration of an engine that compiles code for this allocation, on one thread and
/// without a reservation of guest memory.
pub(super) fn for_compilation(allocation: Allocation) -> Config {
    let mut config = match allocation {
        Allocation::Pooled => pooled_code(),
        Allocation::OnDemand | Allocation::Scarce => on_demand(allocation),
    };
    config.parallel_compilation(false);
    config
}

fn on_demand(allocation: Allocation) -> Config {
    let mut config = base();
    config
        .memory_reservation(allocation.reservation())
        .memory_reservation_for_growth(1 << 20)
        .memory_guard_size(64 << 10)
        .guard_before_linear_memory(false)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config
}

/// Returns true if an operation of the engine failed because the system had no memory, or no room
/// in the address space. Only the type of a cause tells: its text may quote the component.
pub(super) fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| {
        if cause.downcast_ref::<rustix::io::Errno>() == Some(&rustix::io::Errno::NOMEM) {
            return true;
        }
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::OutOfMemory)
    })
}

/// A guard that counts one running guest for the clock.
pub(super) struct Running<'a>(&'a Clock);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Clock {
    running: Arc<AtomicUsize>,
    asleep: Arc<AtomicBool>,
    thread: Thread,
}

impl Clock {
    /// Starts the clock on an OS thread: a task of the async runtime would not run while guests
    /// keep every worker thread busy.
    fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let running = Arc::new(AtomicUsize::new(0));
        let asleep = Arc::new(AtomicBool::new(false));
        let run = running.clone();
        let sleep = asleep.clone();
        let handle = thread::Builder::new()
            .name("palisade-clock".into())
            .spawn(move || tick(&engine, &run, &sleep))?;
        Ok(Self { running, asleep, thread: handle.thread().clone() })
    }
}

fn tick(engine: &EngineWeak, running: &AtomicUsize, asleep: &AtomicBool) {
    let mut idle = Duration::ZERO;
    let mut quiet = 0;
    loop {
        let period = if quiet < QUIET_TICKS { limits::TICK } else { SLOW_TICK };
        thread::sleep(period);
        let Some(engine) = engine.upgrade() else { return };
        engine.increment_epoch();
        owner::tick(limits::TURN);
        quiet = if owner::has_computed() { 0 } else { quiet.saturating_add(1) };
        idle = if running.load(Ordering::SeqCst) == 0 { idle + period } else { Duration::ZERO };
        if idle > IDLE {
            asleep.store(true, Ordering::SeqCst);
            while running.load(Ordering::SeqCst) == 0 {
                thread::park();
            }
            asleep.store(false, Ordering::SeqCst);
            idle = Duration::ZERO;
            quiet = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot make an engine has failed")]
    use super::super::ask::Asking;
    use super::super::border::Cap;
    use super::super::limiter::Limiter;
    use super::super::run::store;
    use super::super::talk::Talk;
    use super::*;
    use crate::tool::Digest;
    use palisade_wasi_fs::Filesystem;
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    /// Returns the compatibility number of an engine. Engines with the same number load each
    /// other's code.
    fn number(config: &Config) -> u64 {
        let mut hasher = DefaultHasher::new();
        Engine::new(config).unwrap().precompile_compatibility_hash().hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn a_child_makes_the_code_that_this_process_would() {
        for allocation in [Allocation::OnDemand, Allocation::Scarce] {
            assert_eq!(number(&for_compilation(allocation)), number(&on_demand(allocation)));
        }
        let runtime = Runtime::shared().unwrap();
        let mut hasher = DefaultHasher::new();
        runtime.engine.precompile_compatibility_hash().hash(&mut hasher);
        assert_eq!(number(&for_compilation(runtime.allocation)), hasher.finish());
    }

    /// Returns a component with `count` memories.
    fn with_memories(count: usize) -> Component {
        let instances = "(core instance (instantiate $m))".repeat(count);
        let text = format!("(component (core module $m (memory 1)) {instances})");
        Component::new(&Runtime::shared().unwrap().engine, palisade_tests::wat::binary(&text))
            .unwrap()
    }

    #[tokio::test]
    async fn calls_that_have_their_sandboxes_never_use_up_the_pool() {
        let runtime = Runtime::shared().unwrap();
        let pool = Pool::new(u64::from(limits::LIVE_SANDBOXES));
        let component = with_memories(limits::MEMORIES);
        let greedy = runtime.linker.instantiate_pre(&component).unwrap();
        let mut running = Vec::new();
        for owner in [b"one", b"two"] {
            let share = pool.share(Digest::of(owner));
            while let Ok(grant) = share.try_take(Runtime::units(&component)) {
                let mut store = store(&runtime, idle());
                let instance = greedy.instantiate_async(&mut store).await;
                assert!(instance.is_ok(), "{:#} beside {}", instance.err().unwrap(), running.len());
                running.push((grant, store));
            }
        }
        assert!(running.len() >= 16, "{}", running.len());
    }

    #[test]
    fn the_pool_takes_as_many_globals_as_the_border() {
        let globals = "(global i32 (i32.const 0))".repeat(Cap::Globals.max() as usize);
        let text =
            format!("(component (core module $m {globals}) (core instance (instantiate $m)))");
        let made =
            Component::new(&Runtime::shared().unwrap().engine, palisade_tests::wat::binary(&text));
        assert!(made.is_ok(), "{:#}", made.err().unwrap());
    }

    #[test]
    fn a_call_takes_as_many_units_as_it_needs_of_the_pool() {
        let units = [0, 1, 2, 3, 16].map(|memories| Runtime::units(&with_memories(memories)));
        assert_eq!(units, [1, 1, 1, 2, 8]);
    }

    /// Returns the state of a guest that does nothing.
    fn idle() -> State {
        let account = limits::Limits::default().account();
        let limiter = Limiter::new(limits::MEMORY, Allocation::Pooled, &account);
        let filesystem = Filesystem::closed();
        State::new(
            filesystem,
            limiter,
            Talk::silent(),
            Asking::nobody(),
            std::time::Instant::now() + limits::TIMEOUT,
        )
    }
}
