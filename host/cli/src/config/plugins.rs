//! Settings of single plugins: `[plugins.NAME]`.

mod json;

use super::paths::PathLists;
use super::resolve::{Origin, Value};
use super::size::plugin_memory;
use super::time::{Written, call_time};
use json::object;
use palisade::internal::{ToolTime, shipped_tools};
use palisade::sandbox::{PluginSettings, PluginSettingsError};
use serde::Deserialize;
use serde_json::Map;
use std::collections::BTreeMap;
use std::time::Duration;

/// The greatest length of a plugin's name, in bytes: that of a file's name.
const MAX_NAME: usize = 255;

/// The table of a plugin, before its values are checked.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawPlugin {
    memory: Option<String>,
    timeout: Option<Written>,
    paths: RawRules,
    prefix: Option<String>,
    rename: BTreeMap<String, String>,
    config: Option<toml::Table>,
    workspace: Option<String>,
}

/// The path rules of a plugin.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawRules {
    allow: Option<Vec<String>>,
    deny: Vec<String>,
}

/// The table of a plugin in one file.
#[derive(Debug, Clone, Default)]
pub struct PluginConfig {
    /// Memory limit of a call, in bytes.
    pub memory: Option<u64>,
    /// Timeout of a call.
    pub timeout: Option<Duration>,
    /// Path rules.
    pub paths: PathLists,
    /// The text before the names of the plugin's tools.
    pub prefix: Option<String>,
    /// The new names of tools by their own.
    pub rename: BTreeMap<String, String>,
    /// The configuration that the plugin gets.
    pub config: Option<Map<String, serde_json::Value>>,
    /// The directory of the workspace that the plugin sees.
    pub workspace: Option<String>,
}

/// The effect of a plugin's limit on the limit for all plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It replaces that limit.
    Replaces,
    /// It lowers that limit: only the project sets it.
    Lowers,
}

/// A limit of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginLimit<T> {
    /// The limit, with its origin.
    pub value: Value<T>,
    /// Its effect.
    pub effect: Effect,
}

/// The effective settings of one plugin.
#[derive(Debug, Clone, Default)]
pub struct PluginOptions {
    /// Memory limit of a call, in bytes.
    pub memory: Option<PluginLimit<u64>>,
    /// Timeout of a call.
    pub timeout: Option<PluginLimit<Duration>>,
    /// The path rules of each file that has some. A path has to be permitted by all of them.
    pub paths: Vec<Value<PathLists>>,
    /// The text before the names of the plugin's tools. Only set by the user's own file.
    pub prefix: Option<Value<String>>,
    /// The new names of tools by their own. Only set by the user's own file.
    pub rename: BTreeMap<String, Value<String>>,
    /// The configuration that the plugin gets. Only set by the user's own file.
    pub config: Option<Value<Map<String, serde_json::Value>>>,
    /// The directory of the workspace that the plugin sees. Only set by the user's own file.
    pub workspace: Option<Value<String>>,
}

impl RawPlugin {
    /// Checks the table of the plugin with this name.
    ///
    /// # Errors
    ///
    /// The key and the reason.
    pub(super) fn checked(self, name: &str) -> Result<PluginConfig, String> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(format!(
                "`plugins.{name}`: a plugin's name is that of its file, of 1 to {MAX_NAME} bytes"
            ));
        }
        let key = |key: &str| format!("plugins.{name}.{key}");
        let memory = self.memory.as_deref().map(|text| plugin_memory(&key("memory"), text));
        let timeout = self.timeout.map(|time| call_time(&key("timeout"), &time.0));
        let config = self.config.map(|table| object(&key("config"), table)).transpose()?;
        let refused = |name: &str, error| format!("`{}`: {error}", key(name));
        let probe = PluginSettings::default();
        if let Some(config) = &config {
            probe.clone().with_config(config.clone()).map_err(|error| refused("config", error))?;
        }
        if let Some(prefix) = &self.prefix {
            probe.clone().with_prefix(prefix).map_err(|error| refused("prefix", error))?;
        }
        for (own, new) in &self.rename {
            probe.clone().with_renamed(own, new).map_err(|error| refused("rename", error))?;
        }
        if let Some(path) = &self.workspace {
            probe.clone().with_workspace(path).map_err(|error| refused("workspace", error))?;
        }
        let is_shipped = shipped_tools(name).is_some();
        let of_files = self.prefix.is_some() || !self.rename.is_empty() || self.workspace.is_some();
        if is_shipped && of_files {
            return Err(format!(
                "`plugins.{name}`: the plugin ships with the program, and rules mean its tools by \
                 their names; `prefix`, `rename` and `workspace` are accepted for the plugin of a file"
            ));
        }
        Ok(PluginConfig {
            memory: memory.transpose()?,
            timeout: timeout.transpose()?,
            paths: PathLists::checked(&key("paths"), self.paths.allow, self.paths.deny)?,
            prefix: self.prefix,
            rename: self.rename,
            config,
            workspace: self.workspace,
        })
    }
}

impl PluginOptions {
    /// Applies the table of a file. A limit that is set already keeps its effect.
    pub(super) fn apply(
        &mut self,
        config: PluginConfig,
        effect: Effect,
        origin: impl Fn() -> Origin,
    ) {
        set(&mut self.memory, config.memory, effect, &origin);
        set(&mut self.timeout, config.timeout, effect, &origin);
        if !config.paths.rules().is_empty() {
            self.paths.push(Value { value: config.paths, origin: origin() });
        }
        if let Some(value) = config.prefix {
            self.prefix = Some(Value { value, origin: origin() });
        }
        let renamed = config.rename.into_iter();
        self.rename.extend(renamed.map(|(own, value)| (own, Value { value, origin: origin() })));
        if let Some(value) = config.config {
            self.config = Some(Value { value, origin: origin() });
        }
        if let Some(value) = config.workspace {
            self.workspace = Some(Value { value, origin: origin() });
        }
    }

    /// Returns the first key of a project's table that would loosen a setting. `memory` is the
    /// limit of plugins without a limit of their own, in bytes.
    pub(super) fn loosened_by(&self, project: &PluginConfig, memory: u64) -> Option<&'static str> {
        let own = self.memory.as_ref().map_or(memory, |own| own.value.value);
        if project.memory.is_some_and(|memory| memory > own) {
            return Some("memory");
        }
        // Without a timeout of the user, the project's is only a bound.
        let own = self.timeout.as_ref().map(|own| own.value.value);
        if project.timeout.zip(own).is_some_and(|(project, own)| project > own) {
            return Some("timeout");
        }
        let users = [
            ("prefix", project.prefix.is_some()),
            ("rename", !project.rename.is_empty()),
            ("config", project.config.is_some()),
            ("workspace", project.workspace.is_some()),
        ];
        users.into_iter().find_map(|(key, is_there)| is_there.then_some(key))
    }

    /// Returns the settings for the host. `memory` is the limit of plugins without a limit of their
    /// own, in bytes.
    ///
    /// # Errors
    ///
    /// The setting that is refused; a file with such a setting is not accepted.
    pub fn settings(&self, memory: u64) -> Result<PluginSettings, PluginSettingsError> {
        let mut settings = PluginSettings::default();
        for lists in &self.paths {
            settings = settings.with_path_rules(lists.value.rules());
        }
        if let Some(PluginLimit { value, effect }) = &self.memory {
            settings = settings.with_memory(match effect {
                Effect::Replaces => value.value,
                Effect::Lowers => value.value.min(memory),
            })?;
        }
        if let Some(PluginLimit { value, effect }) = &self.timeout {
            settings = settings.with_time(match effect {
                Effect::Replaces => ToolTime::Set(value.value),
                Effect::Lowers => ToolTime::AtMost(value.value),
            })?;
        }
        if let Some(prefix) = &self.prefix {
            settings = settings.with_prefix(&prefix.value)?;
        }
        for (own, new) in &self.rename {
            settings = settings.with_renamed(own, &new.value)?;
        }
        if let Some(path) = &self.workspace {
            settings = settings.with_workspace(&path.value)?;
        }
        match &self.config {
            Some(config) => settings.with_config(config.value.clone()),
            None => Ok(settings),
        }
    }

    /// Returns the keys with their values as `config show` prints them, and the origin of each.
    #[must_use]
    pub fn shown(&self) -> Vec<(String, String, &Origin)> {
        let mut rows = Vec::new();
        if let Some(PluginLimit { value, .. }) = &self.memory {
            let size = bytesize::ByteSize(value.value).display().iec().to_string();
            rows.push(("memory".to_owned(), size, &value.origin));
        }
        if let Some(PluginLimit { value, .. }) = &self.timeout {
            let time = humantime::format_duration(value.value).to_string();
            rows.push(("timeout".to_owned(), time, &value.origin));
        }
        for lists in &self.paths {
            let given = lists.value.shown().into_iter();
            let given = given.filter_map(|(key, shown)| Some((format!("paths.{key}"), shown?)));
            rows.extend(given.map(|(key, shown)| (key, shown, &lists.origin)));
        }
        if let Some(prefix) = &self.prefix {
            rows.push(("prefix".to_owned(), prefix.value.clone(), &prefix.origin));
        }
        let renamed = self.rename.iter();
        rows.extend(
            renamed.map(|(own, new)| (format!("rename.{own}"), new.value.clone(), &new.origin)),
        );
        if let Some(path) = &self.workspace {
            rows.push(("workspace".to_owned(), path.value.clone(), &path.origin));
        }
        if let Some(config) = &self.config {
            let text = serde_json::Value::Object(config.value.clone()).to_string();
            rows.push(("config".to_owned(), text, &config.origin));
        }
        rows
    }
}

/// Sets a limit, if a file has one.
fn set<T>(
    limit: &mut Option<PluginLimit<T>>,
    given: Option<T>,
    effect: Effect,
    origin: impl Fn() -> Origin,
) {
    let Some(value) = given else { return };
    let effect = limit.as_ref().map_or(effect, |known| known.effect);
    *limit = Some(PluginLimit { value: Value { value, origin: origin() }, effect });
}

/// Applies the tables of a file.
pub(super) fn apply(
    plugins: &mut BTreeMap<String, PluginOptions>,
    tables: BTreeMap<String, PluginConfig>,
    effect: Effect,
    origin: impl Fn() -> Origin,
) {
    for (name, table) in tables {
        plugins.entry(name).or_default().apply(table, effect, &origin);
    }
}
