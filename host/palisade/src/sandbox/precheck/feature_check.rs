//! Recognition of disabled WebAssembly features where a file declares them.

use super::error::PrecheckError;
use super::feature::Feature;
use wasmparser::{
    AbstractHeapType, CanonicalFunction, CanonicalOption, HeapType, MemoryType, RefType, TableType,
    ValType,
};

fn disabled(feature: Feature) -> Result<(), PrecheckError> {
    Err(PrecheckError::Feature(feature))
}

pub(super) fn memory(ty: &MemoryType) -> Result<(), PrecheckError> {
    match ty {
        MemoryType { memory64: true, .. } => disabled(Feature::Memory64),
        MemoryType { shared: true, .. } => disabled(Feature::Threads),
        MemoryType { page_size_log2: Some(_), .. } => disabled(Feature::CustomPageSizes),
        _ => Ok(()),
    }
}

pub(super) fn table(ty: &TableType) -> Result<(), PrecheckError> {
    match ty {
        TableType { table64: true, .. } => disabled(Feature::Memory64),
        TableType { shared: true, .. } => disabled(Feature::Threads),
        _ => reference(ty.element_type),
    }
}

pub(super) fn value(ty: ValType) -> Result<(), PrecheckError> {
    match ty {
        ValType::Ref(ty) => reference(ty),
        _ => Ok(()),
    }
}

fn reference(ty: RefType) -> Result<(), PrecheckError> {
    match ty.heap_type() {
        HeapType::Abstract { shared: true, .. } => disabled(Feature::Threads),
        HeapType::Abstract { ty: AbstractHeapType::Func | AbstractHeapType::Extern, .. }
            if ty.is_nullable() =>
        {
            Ok(())
        }
        HeapType::Abstract { ty: AbstractHeapType::Func | AbstractHeapType::Extern, .. } => {
            disabled(Feature::FunctionReferences)
        }
        HeapType::Abstract { ty: AbstractHeapType::Exn | AbstractHeapType::NoExn, .. } => {
            disabled(Feature::Exceptions)
        }
        HeapType::Abstract { ty: AbstractHeapType::Cont | AbstractHeapType::NoCont, .. } => {
            disabled(Feature::StackSwitching)
        }
        HeapType::Abstract { .. } => disabled(Feature::Gc),
        HeapType::Concrete(_) | HeapType::Exact(_) => disabled(Feature::FunctionReferences),
    }
}

pub(super) fn canonical(function: &CanonicalFunction) -> Result<(), PrecheckError> {
    use CanonicalFunction as F;
    match function {
        F::Lift { options, .. } | F::Lower { options, .. } => options.iter().try_for_each(option),
        F::ResourceNew { .. } | F::ResourceDrop { .. } | F::ResourceRep { .. } => Ok(()),
        F::ThreadSpawnRef { .. }
        | F::ThreadSpawnIndirect { .. }
        | F::ThreadAvailableParallelism => disabled(Feature::Threads),
        _ => disabled(Feature::ComponentModelAsync),
    }
}

fn option(option: &CanonicalOption) -> Result<(), PrecheckError> {
    match option {
        CanonicalOption::Async | CanonicalOption::Callback(_) => {
            disabled(Feature::ComponentModelAsync)
        }
        CanonicalOption::CoreType(_) | CanonicalOption::Gc => disabled(Feature::ComponentModelGc),
        _ => Ok(()),
    }
}
