//! The kinds of files that are not components.

/// The kind of a file that is not a binary component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Foreign {
    /// An empty file.
    #[error("it is empty")]
    Empty,
    /// Only zeros, as after a system crash.
    #[error(
        "it holds nothing but zeros, as a file does that was not written to its end; copy it again"
    )]
    Zeros,
    /// Native code, including code that wasmtime precompiled.
    #[error(
        "it is compiled native code, which is never loaded; give the .wasm that it was made from"
    )]
    NativeCode,
    /// An archive or a compressed file.
    #[error("it is packed ({0}); unpack it first")]
    Packed(&'static str),
    /// WebAssembly text.
    #[error("it is WebAssembly text; give the binary form")]
    Text,
    /// A core module.
    #[error(
        "it is a core module, not a component; build for wasm32-wasip2, or wrap it with `wasm-tools component new`"
    )]
    Module,
    /// WebAssembly of an unsupported version, before the standard or after it.
    #[error(
        "it is WebAssembly in a version that is not supported; build it with tools for WASI 0.2"
    )]
    Version,
    /// Any other content.
    #[error("it is not WebAssembly")]
    Other,
}
