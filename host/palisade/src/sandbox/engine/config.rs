//! The configurations of the engine, and the sandbox units by which its pool is shared.

use super::allocation::Allocation;
use super::tier::{CodeKind, CodeTier};
use crate::sandbox::limits;
use wasmtime::component::Component;
use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    RegallocAlgorithm,
};

/// Memories in the pool for each sandbox unit. Compilers emit one, and two in a composed component.
const MEMORIES_PER_UNIT: u32 = 2;
/// Tables in the pool for each sandbox unit. A Python component has about 28.
const TABLES_PER_UNIT: u32 = 32;
/// Sandbox units of a call with a large stack, so that all such stacks together are at most 1 GiB.
/// Further calls wait for a sandbox.
const LARGE_STACK_UNITS: u64 = 2;
/// The room on a stack for the functions of the host, in bytes: that of the engine's defaults.
const HOST_STACK: u64 = 1536 << 10;

/// Returns the configuration common to both allocators: the language features, and the settings
/// that determine the cost of a call.
fn base(kind: CodeKind) -> Config {
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
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(16))
        // Only debuggers read it. The frames of a trap are found without it.
        .native_unwind_info(false);
    if let Some(stack) = kind.counted_stack() {
        config
            // A host function that a guest calls may call the guest's allocator, which gets as much
            // stack again. The allocator cannot call the host.
            .max_wasm_stack(stack as usize / 2)
            .async_stack_size((stack + HOST_STACK) as usize)
            // Pages that one call touched would stay with the stack otherwise, uncounted.
            .async_stack_zeroing(true);
    }
    config
}

/// Returns the configuration of an engine with a pool for this many sandboxes, besides those for
/// loading plugins. The code that it runs does not depend on their number.
pub(crate) fn pooled(tier: CodeTier, sandboxes: u32) -> Config {
    let live = sandboxes + limits::LOADING_SANDBOXES;
    // Memory that is cleared in place when a call ends, in bytes. The rest is returned to the
    // kernel, at the cost of page faults.
    let (memory, table) = match tier {
        CodeTier::Baseline => (0, 0),
        CodeTier::Optimized => (512 << 10, 64 << 10),
    };
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
        .linear_memory_keep_resident(memory)
        .table_keep_resident(table)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = pooled_code(tier);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Returns the part of the pool's configuration that compiled code depends on: the address space of
/// one memory.
fn pooled_code(tier: CodeTier) -> Config {
    let mut config = base(CodeKind { allocation: Allocation::Pooled, tier });
    config.memory_reservation(match tier {
        // All that an address of a guest can name, so that accesses need no check of bounds and
        // there is less code to compile.
        CodeTier::Baseline => 4 << 30,
        CodeTier::Optimized => limits::MAX_MEMORY,
    });
    config
}

/// Returns the configuration of an engine that compiles code of this kind, on one thread and
/// without a reservation of guest memory.
pub(crate) fn for_compilation(kind: CodeKind) -> Config {
    let CodeKind { allocation, tier } = kind;
    let mut config = match allocation {
        Allocation::Pooled => pooled_code(tier),
        Allocation::OnDemand | Allocation::Scarce => on_demand(kind),
    };
    config.parallel_compilation(false);
    match tier {
        CodeTier::Baseline => {
            config.cranelift_opt_level(OptLevel::None);
        }
        // The default of the engine.
        CodeTier::Optimized => {}
    }
    if kind.counted_stack().is_some() {
        config.cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass);
    }
    config
}

pub(crate) fn on_demand(kind: CodeKind) -> Config {
    let allocation = kind.allocation;
    let mut config = base(kind);
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
pub(crate) fn sandbox_units(kind: CodeKind, component: &Component) -> u64 {
    const MOST: u32 = (limits::MEMORIES as u32).div_ceil(MEMORIES_PER_UNIT);
    const { assert!(limits::TABLES as u32 <= MOST * TABLES_PER_UNIT) };
    let units = component.resources_required().map_or(MOST, |needed| {
        needed
            .num_memories
            .div_ceil(MEMORIES_PER_UNIT)
            .max(needed.num_tables.div_ceil(TABLES_PER_UNIT))
    });
    let units = u64::from(units.clamp(1, MOST));
    kind.counted_stack().map_or(units, |_| units.max(LARGE_STACK_UNITS))
}
