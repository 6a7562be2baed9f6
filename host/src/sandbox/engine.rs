//! The one engine of the process, its allocator, and the clock that interrupts guests.

use super::limits;
use super::state::State;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use tokio::sync::Semaphore;
use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig};

/// Idle ticks after which the clock sleeps until the next call.
const IDLE_TICKS: u32 = 100;

/// How memory for guests is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// From a pool that was reserved at the start: some 10 µs a call.
    Pooled,
    /// Mapped for each call, because the address space is too short for a pool: some 50 µs a call.
    OnDemand,
}

/// This machine cannot run WebAssembly.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot start the WebAssembly engine: {0}")]
pub struct EngineError(pub(super) String);

/// The engine and everything that exists once per process.
pub(super) struct Runtime {
    pub(super) engine: Engine,
    pub(super) linker: Linker<State>,
    pub(super) allocation: Allocation,
    /// For calls.
    pub(super) slots: Semaphore,
    /// For loading.
    pub(super) loading: Semaphore,
    clock: Clock,
}

impl Runtime {
    /// The process's one runtime, made at first use. One engine only: types and code of two engines must never meet.
    pub(super) fn shared() -> Result<Arc<Self>, EngineError> {
        static SHARED: OnceLock<Result<Arc<Runtime>, EngineError>> = OnceLock::new();
        super::check_machine()?;
        SHARED.get_or_init(|| Self::caught_start().map(Arc::new)).clone()
    }

    /// What an engine meets on a machine that is short of something is not always an error of its own.
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
                tracing::info!("no pool of memory on this machine, allocating for each call: {error:#}");
                (Engine::new(&on_demand())?, Allocation::OnDemand)
            }
        };
        let linker = super::imports::linker(&engine)?;
        let clock = Clock::start(engine.weak())?;
        Ok(Self {
            engine,
            linker,
            allocation,
            slots: Semaphore::new(limits::LIVE_SANDBOXES as usize),
            loading: Semaphore::new(limits::LOADING_SANDBOXES as usize),
            clock,
        })
    }

    /// How many sandboxes of calls there are now.
    pub(super) fn live(&self) -> u64 {
        u64::from(limits::LIVE_SANDBOXES).saturating_sub(self.slots.available_permits() as u64)
    }

    /// Keeps the clock ticking while the guard lives.
    pub(super) fn running(&self) -> Running<'_> {
        self.clock.running.fetch_add(1, Ordering::SeqCst);
        if self.clock.asleep.load(Ordering::SeqCst) {
            self.clock.thread.unpark();
        }
        Running(&self.clock)
    }
}

/// What both allocators share: the features of the language, and the switches behind the price of a call.
fn base() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        // The component model's own tasks cost 3 to 4 µs a call, and a dozen advisories; synchronous guests need none of it.
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
        .total_core_instances(live * 16)
        .total_memories(live * 2)
        .total_tables(live * 16)
        .total_stacks(live)
        .max_core_instances_per_component(limits::INSTANCES as u32)
        .max_memories_per_component(limits::MEMORIES as u32)
        .max_tables_per_component(limits::TABLES as u32)
        .max_tables_per_module(4)
        .table_elements(limits::ELEMENTS_PER_TABLE)
        .max_memory_size(limits::MAX_MEMORY as usize)
        .max_unused_warm_slots(live)
        // Memory up to these sizes is cleared in place when a call ends; more is given back to the kernel, at the price of page faults.
        .linear_memory_keep_resident(512 << 10)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = pooled_code();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// What compiled code has to know of the pool: how much of the address space belongs to one memory.
fn pooled_code() -> Config {
    let mut config = base();
    config.memory_reservation(limits::MAX_MEMORY);
    config
}

/// An engine that makes the code of one with this allocation, on one thread and without reserving any memory for guests.
pub(super) fn for_compilation(allocation: Allocation) -> Config {
    let mut config = match allocation {
        Allocation::Pooled => pooled_code(),
        Allocation::OnDemand => on_demand(),
    };
    config.parallel_compilation(false);
    config
}

fn on_demand() -> Config {
    let mut config = base();
    config
        .memory_reservation(0)
        .memory_reservation_for_growth(1 << 20)
        .memory_guard_size(64 << 10)
        .guard_before_linear_memory(false)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config
}

/// Counts one running guest for the clock.
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
    /// An operating-system thread: a task of the runtime would never run while guests keep every worker busy.
    fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let (running, asleep) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (run, sleep) = (running.clone(), asleep.clone());
        let handle = thread::Builder::new().name("palisade-clock".into()).spawn(move || tick(&engine, &run, &sleep))?;
        Ok(Self { running, asleep, thread: handle.thread().clone() })
    }
}

fn tick(engine: &EngineWeak, running: &AtomicUsize, asleep: &AtomicBool) {
    let mut idle = 0;
    loop {
        thread::sleep(limits::TICK);
        let Some(engine) = engine.upgrade() else { return };
        engine.increment_epoch();
        idle = if running.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
        if idle > IDLE_TICKS {
            asleep.store(true, Ordering::SeqCst);
            while running.load(Ordering::SeqCst) == 0 {
                thread::park();
            }
            asleep.store(false, Ordering::SeqCst);
            idle = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot make an engine has failed")]
    use super::*;
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    /// Engines of one number load each other's code.
    fn number(config: &Config) -> u64 {
        let mut hasher = DefaultHasher::new();
        Engine::new(config).unwrap().precompile_compatibility_hash().hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn a_child_makes_the_code_that_this_process_would() {
        assert_eq!(number(&for_compilation(Allocation::OnDemand)), number(&on_demand()));
        let runtime = Runtime::shared().unwrap();
        let mut hasher = DefaultHasher::new();
        runtime.engine.precompile_compatibility_hash().hash(&mut hasher);
        assert_eq!(number(&for_compilation(runtime.allocation)), hasher.finish());
    }
}
