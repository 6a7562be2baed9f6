//! The configurations of the engine, and the sandbox units by which its pool is shared.

use super::allocation::Allocation;
use super::tier::{CodeKind, CodeTier};
use crate::sandbox::limits;
use wasmtime::component::Component;
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

/// Memories in the pool for each sandbox unit. Compilers emit one, and two in a composed component.
const MEMORIES_PER_UNIT: u32 = 2;
/// Tables in the pool for each sandbox unit. A Python component has about 28.
const TABLES_PER_UNIT: u32 = 32;

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

/// Returns the configuration of an engine with a pool for this many sandboxes, besides those for
/// loading plugins. The code that it runs does not depend on their number.
pub(crate) fn pooled(sandboxes: u32) -> Config {
    let live = sandboxes + limits::LOADING_SANDBOXES;
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

/// Returns the configuration of an engine that compiles code of this kind, on one thread and
/// without a reservation of guest memory. The engine of the allocation runs the code of every tier.
pub(crate) fn for_compilation(kind: CodeKind) -> Config {
    let CodeKind { allocation, tier } = kind;
    let mut config = match allocation {
        Allocation::Pooled => pooled_code(),
        Allocation::OnDemand | Allocation::Scarce => on_demand(allocation),
    };
    config.parallel_compilation(false);
    match tier {
        // With single-pass register allocation, each value has a place of its own on the stack:
        // CPython, recursing through C, took more than eight times as much.
        CodeTier::Baseline => {
            config.cranelift_opt_level(OptLevel::None);
        }
        // The default of the engine.
        CodeTier::Optimized => {}
    }
    config
}

pub(crate) fn on_demand(allocation: Allocation) -> Config {
    let mut config = base();
    config
        .memory_reservation(allocation.reservation())
        .memory_reservation_for_growth(1 << 20)
        .memory_guard_size(64 << 10)
        .guard_before_linear_memory(false)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config
}

/// Returns the number of sandbox units that a call of this component takes. They cover all that
/// the component needs from the pool, so that an admitted call never finds the pool empty.
pub(crate) fn sandbox_units(component: &Component) -> u64 {
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
