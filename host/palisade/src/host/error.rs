//! The errors of building a host.

use crate::plugins::LoadError;
use crate::sandbox::{CacheError, EngineError};
use crate::workspace::WorkspaceError;
use std::path::PathBuf;

/// The reason why a host cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The workspace cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A plugin directory cannot be read, or a native tool cannot be registered.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The cache directory cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The cache lies inside the workspace, where tools could reach it.
    #[error("the cache of compiled code `{}` lies inside the workspace, where tools could read its key; choose a smaller workspace, or a cache elsewhere or none", cache.display())]
    CacheInWorkspace {
        /// The cache directory.
        cache: PathBuf,
    },
    /// A path that must be protected cannot be opened.
    #[error("`{}` cannot be protected: {source}", path.display())]
    Protected {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A registry is given and plugins as well, which would change the registry.
    #[error(
        "a host with a given registry loads no plugins: leave out the plugin directories and files, or load them in a host of their own and run a subset of its registry"
    )]
    RegistryWithPlugins,
    /// This machine cannot run WebAssembly.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A shipped plugin has a setting that only files can have.
    #[error(
        "the plugin `{plugin}` ships with the host and cannot have {setting}: it is accepted for the plugin of a file"
    )]
    ShippedPlugin {
        /// The plugin.
        plugin: String,
        /// The setting.
        setting: &'static str,
    },
    /// A limit is out of range.
    #[error("the limit `{name}` is out of range: {accepted}")]
    Limit {
        /// The name of the limit.
        name: &'static str,
        /// The accepted range.
        accepted: &'static str,
    },
}
