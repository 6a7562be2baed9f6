//! The error of a machine that cannot run the engine.

/// The error of a machine that cannot run WebAssembly.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot start the WebAssembly engine: {0}")]
pub struct EngineError(pub(in crate::sandbox) String);
