//! The error of a refused setting.

use crate::tool::InvalidName;
use crate::tool::json::JsonError;
use crate::workspace::InvalidSubdirectory;

/// The reason why a setting of a plugin is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PluginSettingsError {
    /// The memory is out of range.
    #[error("the memory is out of range: 1MiB to 512MiB are accepted")]
    Memory,
    /// The timeout is out of range.
    #[error("the timeout is out of range: 1ms to 600s are accepted")]
    Timeout,
    /// The prefix has not the form of a tool's name, or is longer than 32 characters.
    #[error("`{0}` is no prefix of names: ^[a-z][a-z0-9_]{{0,31}}$ is accepted, such as `left_`")]
    Prefix(String),
    /// A name of a tool is invalid.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The path names no directory of the workspace.
    #[error(transparent)]
    Workspace(#[from] InvalidSubdirectory),
    /// The configuration is too large.
    #[error("the configuration is too large for a call: {0}; at most 64 KiB of JSON are accepted")]
    Config(#[source] JsonError),
}
