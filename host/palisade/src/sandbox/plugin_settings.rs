//! The settings of one plugin, which the operator makes for it.

mod error;
mod names;

use super::limits;
use crate::execution::ToolTime;
use crate::tool::json::{JsonBounds, JsonError};
use crate::tool::{Definition, ToolName};
use crate::workspace::{PathRules, ProtectedPaths, Subdirectory};
pub use error::PluginSettingsError;
use names::Names;
pub(crate) use names::UnusableNames;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// The key in the metadata of a call under which a plugin finds its configuration.
pub const CONFIG_KEY: &str = "plugin-config";

/// The bounds of a configuration: it goes into each call.
const CONFIG: JsonBounds = JsonBounds { bytes: 64 << 10, depth: 64, members: 10_000 };
/// The accepted memory, in bytes.
const MEMORY: RangeInclusive<u64> = 1 << 20..=limits::MAX_MEMORY;
/// The shortest accepted timeout: a shorter one would pass before any work starts.
const LEAST_TIME: Duration = Duration::from_millis(1);

/// The settings of one plugin. Without a setting, the host's hold for the plugin.
///
/// ```
/// use palisade::sandbox::PluginSettings;
///
/// let settings = PluginSettings::default().with_memory(256 << 20)?;
/// assert!(settings.with_memory(1).is_err());
/// # Ok::<(), palisade::sandbox::PluginSettingsError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PluginSettings {
    memory: Option<u64>,
    time: Option<ToolTime>,
    paths: PathRules,
    names: Names,
    config: Option<Arc<str>>,
    workspace: Option<Subdirectory>,
}

impl PluginSettings {
    /// Sets the memory of the guest of one call, in bytes, in place of [`Limits::memory`]: 1 MiB to
    /// 512 MiB.
    ///
    /// # Errors
    ///
    /// [`PluginSettingsError::Memory`] if it is out of range.
    ///
    /// [`Limits::memory`]: crate::sandbox::limits::Limits::memory
    pub fn with_memory(self, bytes: u64) -> Result<Self, PluginSettingsError> {
        match MEMORY.contains(&bytes) {
            true => Ok(Self { memory: Some(bytes), ..self }),
            false => Err(PluginSettingsError::Memory),
        }
    }

    /// Sets the timeout of the calls of the plugin's tools, 1 ms to 600 s. A call, and the timeout
    /// of a single tool, take precedence.
    ///
    /// # Errors
    ///
    /// [`PluginSettingsError::Timeout`] if it is out of range.
    pub fn with_timeout(self, time: Duration) -> Result<Self, PluginSettingsError> {
        self.with_time(ToolTime::Set(time))
    }

    /// Like [`with_timeout`](Self::with_timeout), with a limit that may only be a bound.
    #[doc(hidden)]
    pub fn with_time(self, time: ToolTime) -> Result<Self, PluginSettingsError> {
        match (LEAST_TIME..=limits::MAX_TIMEOUT).contains(&time.time()) {
            true => Ok(Self { time: Some(time), ..self }),
            false => Err(PluginSettingsError::Timeout),
        }
    }

    /// Denies the paths that these rules deny to the plugin, in addition to the rules of the host.
    /// Several rules add up. Their patterns are relative to the workspace.
    #[must_use]
    pub fn with_path_rules(self, rules: &PathRules) -> Self {
        Self { paths: self.paths.and(rules), ..self }
    }

    /// Sets a prefix for the names under which sessions see the plugin's tools, such as `left_`. It
    /// lets two plugins with a tool of the same name be used side by side. Rules that permit
    /// something, and approvals, keep naming a tool as the plugin does.
    ///
    /// # Errors
    ///
    /// [`PluginSettingsError::Prefix`] if it is not `^[a-z][a-z0-9_]{0,31}$`.
    pub fn with_prefix(self, prefix: &str) -> Result<Self, PluginSettingsError> {
        Ok(Self { names: self.names.with_prefix(prefix)?, ..self })
    }

    /// Sets the name under which sessions see a tool, in place of its own; it gets no prefix then.
    /// A plugin whose tools would share a name is rejected.
    ///
    /// # Errors
    ///
    /// [`PluginSettingsError::Name`] if one of the names is not the name of a tool.
    pub fn with_renamed(self, own: &str, new: &str) -> Result<Self, PluginSettingsError> {
        Ok(Self { names: self.names.with_renamed(own, new)?, ..self })
    }

    /// Sets the configuration, which the plugin finds under `plugin-config` in the metadata of each
    /// call of its tools: at most 64 KiB of JSON. It is not for secrets, because the plugin may
    /// return it to the model. A file that shares its name with another file does not get it.
    ///
    /// # Errors
    ///
    /// [`PluginSettingsError::Config`] if it is too large or too deep.
    pub fn with_config(self, config: Map<String, Value>) -> Result<Self, PluginSettingsError> {
        let config = Value::Object(config);
        // The length is that of the text, which this check only estimates.
        let shape = JsonBounds { bytes: usize::MAX, ..CONFIG };
        shape.admit(&config).map_err(PluginSettingsError::Config)?;
        let text = config.to_string();
        match text.len() <= CONFIG.bytes {
            true => Ok(Self { config: Some(text.into()), ..self }),
            false => {
                let error = JsonError::TooLong { got: text.len(), max: CONFIG.bytes };
                Err(PluginSettingsError::Config(error))
            }
        }
    }

    /// Lets the plugin see a directory of the workspace only, given relative to the workspace.
    /// Paths in its inputs are relative to it. It is opened at the first call, without following a
    /// link, and kept open; while it does not exist, calls are refused. Results, questions and path
    /// rules stay relative to the workspace.
    ///
    /// # Errors
    ///
    /// [`PluginSettingsError::Workspace`] if the path is not relative, or has `.` or `..`.
    pub fn with_workspace(self, path: &str) -> Result<Self, PluginSettingsError> {
        Ok(Self { workspace: Some(Subdirectory::parse(path)?), ..self })
    }

    /// Returns the directory of the workspace that the plugin sees, if it does not see all of it.
    pub(crate) fn workspace(&self) -> Option<&Subdirectory> {
        self.workspace.as_ref()
    }

    /// Returns the memory of the guest of one call, in bytes, if it is set.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Returns the time limit of a call, if it is set.
    pub(crate) fn time(&self) -> Option<ToolTime> {
        self.time
    }

    /// Returns the configuration as the text of a JSON object, if there is one.
    pub(crate) fn config(&self) -> Option<&str> {
        self.config.as_deref()
    }

    /// Returns the first setting that a shipped plugin cannot have, if there is one: rules mean its
    /// tools by their names.
    pub(crate) fn not_for_shipped(&self) -> Option<&'static str> {
        let names = self.names.change_anything().then_some("a prefix or another name of a tool");
        names.or_else(|| self.workspace.as_ref().map(|_| "a directory of its own"))
    }

    /// Returns the definitions of a plugin's tools as sessions see them.
    pub(crate) fn shown(&self, tools: &[Definition]) -> Result<Vec<Definition>, UnusableNames> {
        let names = self.names.of(tools)?;
        let shown = |(tool, name): (&Definition, ToolName)| {
            let tool = tool.shown_as(name);
            match &self.workspace {
                Some(root) if tool.side_effects().sees_files() => tool.with_note(&note(root)),
                Some(_) | None => tool,
            }
        };
        Ok(tools.iter().zip(names).map(shown).collect())
    }

    /// Returns whether there is a configuration.
    pub(crate) fn has_config(&self) -> bool {
        self.config.is_some()
    }

    /// Returns the settings without the configuration.
    pub(crate) fn without_config(&self) -> Self {
        Self { config: None, ..self.clone() }
    }

    /// Returns the rules of a workspace for the plugin.
    pub(crate) fn narrow(&self, rules: Arc<ProtectedPaths>) -> Arc<ProtectedPaths> {
        match self.paths.is_empty() {
            true => rules,
            false => Arc::new(rules.narrowed(&self.paths)),
        }
    }
}

/// Returns the sentence by which a model learns what the tool sees.
fn note(root: &Subdirectory) -> String {
    format!("The tool sees the directory `{root}` only, and its paths are relative to it.")
}

#[cfg(test)]
mod tests;
