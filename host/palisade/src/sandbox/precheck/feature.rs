//! The disabled WebAssembly features.

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
