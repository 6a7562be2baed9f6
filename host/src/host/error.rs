//! Why a host cannot be built.

use crate::plugins::LoadError;
use crate::sandbox::{CacheError, EngineError};
use crate::workspace::WorkspaceError;
use std::path::PathBuf;

/// Why a host cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The workspace cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A plugin directory cannot be read, or two tools of the program itself have one name.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The cache directory cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The cache lies where tools could reach it.
    #[error("the cache of compiled code `{}` lies inside the workspace, where tools could read its key; choose a smaller workspace with --workspace, or set PALISADE_CACHE to a directory elsewhere, or to off", cache.display())]
    CacheInWorkspace {
        /// Where it lies.
        cache: PathBuf,
    },
    /// What is to be protected cannot be looked at.
    #[error("`{}` cannot be protected: {source}", path.display())]
    Protected {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// This machine cannot run WebAssembly.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A limit is out of range.
    #[error("the limit `{name}` is out of range: {accepted}")]
    Limit {
        /// Which limit.
        name: &'static str,
        /// What would be accepted.
        accepted: &'static str,
    },
}
