//! Disabled WebAssembly features, recognised where a file declares them.

use super::BorderRefused;
use wasmparser::{
    AbstractHeapType, CanonicalFunction, CanonicalOption, HeapType, MemoryType, RefType, TableType,
    ValType,
};

/// A WebAssembly feature that is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Feature {
    /// 64-bit memories and tables.
    #[error("64-bit memory (memory64)")]
    Memory64,
    /// Memory shared between threads.
    #[error("shared memory (threads)")]
    Threads,
    /// Structs, arrays and other garbage-collected types.
    #[error("garbage-collected types (gc)")]
    Gc,
    /// Typed function references.
    #[error("typed function references (function-references)")]
    FunctionReferences,
    /// Exceptions and their tags.
    #[error("exceptions (exception-handling)")]
    Exceptions,
    /// Memories with a page size other than 64 KiB.
    #[error("other page sizes (custom-page-sizes)")]
    CustomPageSizes,
    /// Continuations.
    #[error("continuations (stack-switching)")]
    StackSwitching,
    /// Asynchronous functions, streams and futures of the component model.
    #[error("asynchronous functions, streams or futures (component-model-async, WASI 0.3)")]
    ComponentModelAsync,
    /// The canonical ABI over garbage-collected types.
    #[error("garbage-collected types in its interface (component-model-gc)")]
    ComponentModelGc,
}

fn off(feature: Feature) -> Result<(), BorderRefused> {
    Err(BorderRefused::Feature(feature))
}

pub(super) fn memory(ty: &MemoryType) -> Result<(), BorderRefused> {
    match ty {
        MemoryType { memory64: true, .. } => off(Feature::Memory64),
        MemoryType { shared: true, .. } => off(Feature::Threads),
        MemoryType { page_size_log2: Some(_), .. } => off(Feature::CustomPageSizes),
        _ => Ok(()),
    }
}

pub(super) fn table(ty: &TableType) -> Result<(), BorderRefused> {
    match ty {
        TableType { table64: true, .. } => off(Feature::Memory64),
        TableType { shared: true, .. } => off(Feature::Threads),
        _ => reference(ty.element_type),
    }
}

pub(super) fn value(ty: ValType) -> Result<(), BorderRefused> {
    match ty {
        ValType::Ref(ty) => reference(ty),
        _ => Ok(()),
    }
}

fn reference(ty: RefType) -> Result<(), BorderRefused> {
    match ty.heap_type() {
        HeapType::Abstract { shared: true, .. } => off(Feature::Threads),
        HeapType::Abstract { ty: AbstractHeapType::Func | AbstractHeapType::Extern, .. }
            if ty.is_nullable() =>
        {
            Ok(())
        }
        HeapType::Abstract { ty: AbstractHeapType::Func | AbstractHeapType::Extern, .. } => {
            off(Feature::FunctionReferences)
        }
        HeapType::Abstract { ty: AbstractHeapType::Exn | AbstractHeapType::NoExn, .. } => {
            off(Feature::Exceptions)
        }
        HeapType::Abstract { ty: AbstractHeapType::Cont | AbstractHeapType::NoCont, .. } => {
            off(Feature::StackSwitching)
        }
        HeapType::Abstract { .. } => off(Feature::Gc),
        HeapType::Concrete(_) | HeapType::Exact(_) => off(Feature::FunctionReferences),
    }
}

pub(super) fn canonical(function: &CanonicalFunction) -> Result<(), BorderRefused> {
    use CanonicalFunction as F;
    match function {
        F::Lift { options, .. } | F::Lower { options, .. } => options.iter().try_for_each(option),
        F::ResourceNew { .. } | F::ResourceDrop { .. } | F::ResourceRep { .. } => Ok(()),
        F::ThreadSpawnRef { .. }
        | F::ThreadSpawnIndirect { .. }
        | F::ThreadAvailableParallelism => off(Feature::Threads),
        _ => off(Feature::ComponentModelAsync),
    }
}

fn option(option: &CanonicalOption) -> Result<(), BorderRefused> {
    match option {
        CanonicalOption::Async | CanonicalOption::Callback(_) => off(Feature::ComponentModelAsync),
        CanonicalOption::CoreType(_) | CanonicalOption::Gc => off(Feature::ComponentModelGc),
        _ => Ok(()),
    }
}
