//! Parses and checks `palisade.toml`, without opening its paths or filling in defaults.

mod raw;
mod raw_plugins;
mod text;

pub use text::FileOf;

use super::adapted::{Adapted, RawAdapted};
use super::journal::JournalConfig;
use super::keys::RawKey;
use super::network::NetworkConfig;
use super::paths::PathsConfig;
use super::plugins::{PluginConfig, RawPlugin};
use super::servers::{self, McpServer};
use super::size::{compile_memory, memory, processes, shell_memory, total_memory};
use super::time::{call_time, compile_time, confirm_time};
use palisade::policy::{Mode, parts};
use palisade::sandbox::limits;
use palisade::tool::text::{short_lines, visible};
use palisade::workspace::HardLinks;
use palisade::{
    SideEffects,
    tool::{ToolName, nearest_names},
};
use palisade_mcp_client::ServerName;
use palisade_trust::TrustedKey;
use raw::{RawFile, RawTrusted};
pub(super) use raw::{RawJournal, RawNetwork};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The content of a configuration file.
#[derive(Debug, Clone, Default)]
pub struct FileConfig {
    /// Modes of side-effect classes.
    pub classes: BTreeMap<SideEffects, Mode>,
    /// Modes of tools, keyed by name or `plugin/tool`.
    pub tools: BTreeMap<String, Mode>,
    /// Timeout of a confirmation.
    pub confirm_timeout: Option<Duration>,
    /// Trusted workspaces.
    pub trusted: Vec<Trusted>,
    /// Memory limit of a call, in bytes.
    pub memory: Option<u64>,
    /// Memory limit of all calls together, in bytes.
    pub total_memory: Option<u64>,
    /// Timeout of a call.
    pub timeout: Option<Duration>,
    /// Time limit for compiling one plugin.
    pub compile_time: Option<Duration>,
    /// Address space limit for compiling one plugin, in bytes.
    pub compile_memory: Option<u64>,
    /// Maximum number of concurrent calls per session.
    pub concurrency: Option<u32>,
    /// Maximum number of concurrent calls of one tool per session.
    pub tool_concurrency: BTreeMap<String, u32>,
    /// Timeout of calls of one tool.
    pub tool_timeout: BTreeMap<String, Duration>,
    /// Whether `shell` may run without confinement where none is available.
    pub shell_unconfined: Option<bool>,
    /// Whether commands of `shell` may use the network.
    pub shell_network: Option<bool>,
    /// Maximum number of processes of a `shell` command.
    pub shell_processes: Option<u64>,
    /// Resident memory limit of all processes of a `shell` command, in bytes.
    pub shell_memory: Option<u64>,
    /// Whether calls run on separate threads, because the workspace may block in the kernel.
    pub may_hang: Option<bool>,
    /// Whether files with several hard links may be changed.
    pub hard_links: Option<HardLinks>,
    /// Plugin directories.
    pub directories: Vec<PathBuf>,
    /// Whether the shipped plugins are loaded.
    pub builtin: Option<bool>,
    /// Settings of single plugins, by name.
    pub plugins: BTreeMap<String, PluginConfig>,
    /// The keys of plugins' authors.
    pub keys: Vec<TrustedKey>,
    /// Components of other worlds.
    pub adapted: Vec<Adapted>,
    /// Tools that are not shown to models, each by name or `plugin/tool`.
    pub hide: BTreeSet<String>,
    /// The only tools that may be called, each by name or `plugin/tool`.
    pub only: Option<BTreeSet<String>>,
    /// The journal.
    pub journal: JournalConfig,
    /// The network of plugins.
    pub network: NetworkConfig,
    /// Path rules.
    pub paths: PathsConfig,
    /// MCP servers as sources of tools.
    pub servers: BTreeMap<ServerName, McpServer>,
}

/// A trusted workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// The directory.
    pub workspace: PathBuf,
    /// Modes that still apply there.
    pub overrides: BTreeMap<SideEffects, Mode>,
}

/// The error of an unusable configuration file. An unreadable policy is an error, never an empty
/// policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not valid.
    #[error("`{}` is not a valid configuration: {message}", path.display())]
    Invalid {
        /// The path of the file.
        path: PathBuf,
        /// The location and the reason.
        message: String,
    },
    /// A project file would loosen a setting.
    #[error("`{}`: `{key}` would loosen a setting; a project file may only tighten. Move it to your own file: {}", path.display(), user_file.display())]
    Loosens {
        /// The path of the project file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The file that may contain the key.
        user_file: PathBuf,
    },
}

impl FileConfig {
    /// Reads a file, if it exists.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the file exists and cannot be read, is not valid, or has an unknown key
    /// (the message suggests the nearest known key). The user's own file is refused if others can
    /// change it.
    pub fn read(path: &Path, of: FileOf) -> Result<Option<Self>, ConfigError> {
        let text = Self::text(path, of);
        let Some(text) =
            text.map_err(|source| ConfigError::Read { path: path.to_owned(), source })?
        else {
            return Ok(None);
        };
        Self::parse(&text)
            .map(Some)
            .map_err(|message| ConfigError::Invalid { path: path.to_owned(), message })
    }

    /// Returns the text of a file, if it exists.
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be read.
    pub(crate) fn text(path: &Path, of: FileOf) -> io::Result<Option<String>> {
        match text::is_missing(path)? {
            true => Ok(None),
            false => text::read(path, of).map(Some),
        }
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    ///
    /// The location and the reason. The message quotes the untrusted file, so that control
    /// characters are escaped.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parsed(text).map_err(|message| visible(&message))
    }

    fn parsed(text: &str) -> Result<Self, String> {
        text::check_length(text)?;
        let raw: RawFile = toml::from_str(text).map_err(|error| explain(&error, text))?;
        let confirm = &raw.confirm;
        let config = Self {
            classes: modes(
                "confirm",
                [&confirm.none, &confirm.read, &confirm.write, &confirm.execute, &confirm.network],
            )?,
            tools: confirm
                .tools
                .iter()
                .map(|(tool, mode)| tool_mode(tool, mode))
                .collect::<Result<_, _>>()?,
            confirm_timeout: confirm
                .timeout
                .as_ref()
                .map(|time| confirm_time(&time.0))
                .transpose()?,
            trusted: raw.trusted.iter().map(trusted).collect::<Result<_, _>>()?,
            memory: raw.limits.memory.as_deref().map(memory).transpose()?,
            timeout: raw
                .limits
                .timeout
                .as_ref()
                .map(|time| call_time("limits.timeout", &time.0))
                .transpose()?,
            compile_time: raw
                .limits
                .compile_time
                .as_ref()
                .map(|time| compile_time(&time.0))
                .transpose()?,
            compile_memory: raw.limits.compile_memory.as_deref().map(compile_memory).transpose()?,
            total_memory: raw.limits.total_memory.as_deref().map(total_memory).transpose()?,
            concurrency: raw
                .limits
                .concurrency
                .map(|count| concurrency("limits.concurrency", count))
                .transpose()?,
            tool_concurrency: per_tool(
                "limits.tool_concurrency",
                &raw.limits.tool_concurrency,
                |key, count| concurrency(key, *count),
            )?,
            tool_timeout: per_tool(
                "limits.tool_timeout",
                &raw.limits.tool_timeout,
                |key, time| call_time(key, &time.0),
            )?,
            shell_unconfined: raw.shell.unconfined,
            shell_network: raw.shell.network,
            shell_processes: raw.shell.processes.map(processes).transpose()?,
            shell_memory: raw.shell.memory.as_deref().map(shell_memory).transpose()?,
            may_hang: raw.workspace.may_hang,
            hard_links: raw.workspace.hard_links.as_deref().map(hard_links).transpose()?,
            directories: raw.plugins.directories.iter().map(|text| expand(text)).collect(),
            builtin: raw.plugins.builtin,
            plugins: named(raw.plugins.named)?,
            keys: raw.plugins.keys.iter().map(RawKey::checked).collect::<Result<_, _>>()?,
            adapted: raw.adapt.iter().map(RawAdapted::checked).collect::<Result<_, _>>()?,
            hide: names("tools.hide", raw.tools.hide)?,
            only: raw.tools.only.map(|only| names("tools.only", only)).transpose()?,
            journal: JournalConfig::checked(&raw.journal)?,
            network: NetworkConfig::checked(&raw.network)?,
            paths: PathsConfig::checked(raw.paths)?,
            servers: servers::checked(raw.mcp)?,
        };
        Ok(config)
    }
}

/// The length of a line in an error, in bytes: the error quotes the line with the fault.
const MAX_QUOTED: usize = 300;

/// Returns the message of the toml crate, with the nearest known key if a key is unknown.
fn explain(error: &toml::de::Error, file: &str) -> String {
    let text = short_lines(error.to_string().trim_end(), MAX_QUOTED);
    let mut quoted = error.message().split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| error.message().starts_with("unknown field"));
    let nearest = unknown.and_then(|key| nearest_names(key, quoted).into_iter().next());
    match nearest {
        Some(key) => format!("{text}\ndid you mean `{key}`?"),
        None => {
            accepted(error, file).map_or_else(|| text.clone(), |form| format!("{text}\n{form}"))
        }
    }
}

/// Returns the accepted form of a value, if a value of this type is accepted in another form.
fn accepted(error: &toml::de::Error, file: &str) -> Option<&'static str> {
    let message = error.message();
    let span = error.span()?;
    let line = file.get(..span.start)?.lines().last().unwrap_or_default();
    let key = line.split('=').next().unwrap_or_default().trim();
    let is_size = key.ends_with("memory") || key == "max_size";
    if is_size && message.starts_with("invalid type: integer") {
        return Some("write a size with its unit, like \"128MiB\"");
    }
    if message.ends_with("expected a sequence") && !message.starts_with("invalid type: map") {
        return Some("write a list, like [\"a\", \"b\"]");
    }
    if message.starts_with("invalid type: boolean") && message.ends_with("expected a string") {
        return Some(
            "write a word or a time in quotes; a mode is \"auto\", \"prompt\", \"prompt_once\" or \"deny\"",
        );
    }
    if !message.starts_with("invalid type: map, expected a sequence") {
        return None;
    }
    match file.get(span)? {
        "[trusted]" => Some("write `[[trusted]]`: a file can have several of them"),
        "[plugins.keys]" => Some("write `[[plugins.keys]]`: a file can have several of them"),
        "[adapt]" => Some("write `[[adapt]]`: a file can have several of them"),
        _ => None,
    }
}

fn modes(table: &str, texts: [&Option<String>; 5]) -> Result<BTreeMap<SideEffects, Mode>, String> {
    let given = SideEffects::ALL
        .into_iter()
        .zip(texts)
        .filter_map(|(class, text)| text.as_deref().map(|text| (class, text)));
    given.map(|(class, text)| Ok((class, mode(&format!("{table}.{class}"), text)?))).collect()
}

fn mode(key: &str, text: &str) -> Result<Mode, String> {
    text.parse().map_err(|error| format!("`{key}`: {error}"))
}

fn tool_mode(name: &str, text: &str) -> Result<(String, Mode), String> {
    check_name("confirm.tools", name)?;
    Ok((name.to_owned(), mode(&format!("confirm.tools.{name}"), text)?))
}

/// Checks a tool's name, which may be qualified by its plugin's.
fn check_name(key: &str, name: &str) -> Result<(), String> {
    let (plugin, tool) = parts(name);
    ToolName::parse(tool).map_err(|error| format!("`{key}`: {error}"))?;
    match plugin {
        Some("") => Err(format!("`{key}`: `{name}` names no plugin; write \"PLUGIN/{tool}\"")),
        Some(_) | None => Ok(()),
    }
}

fn names(key: &str, names: BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    names.iter().try_for_each(|name| check_name(key, name))?;
    Ok(names)
}

/// Checks the tables of single plugins.
fn named(raw: BTreeMap<String, RawPlugin>) -> Result<BTreeMap<String, PluginConfig>, String> {
    raw.into_iter().map(|(name, table)| Ok((name.clone(), table.checked(&name)?))).collect()
}

fn trusted(raw: &RawTrusted) -> Result<Trusted, String> {
    let overrides =
        modes("trusted", [&raw.none, &raw.read, &raw.write, &raw.execute, &raw.network])?;
    let workspace = expand(&raw.workspace);
    // A relative path would depend on the current directory.
    if workspace.is_absolute() {
        Ok(Trusted { workspace, overrides })
    } else {
        Err(format!(
            "`trusted.workspace` is `{}`; write the whole path, from `/` or `~/` on",
            raw.workspace
        ))
    }
}

fn hard_links(text: &str) -> Result<HardLinks, String> {
    text.parse().map_err(|error| format!("`workspace.hard_links`: {error}"))
}

/// Checks a table with one value per tool.
fn per_tool<R, T>(
    table: &str,
    raw: &BTreeMap<String, R>,
    check: impl Fn(&str, &R) -> Result<T, String>,
) -> Result<BTreeMap<String, T>, String> {
    let checked = |(tool, value): (&String, &R)| {
        check_name(table, tool)?;
        Ok((tool.clone(), check(&format!("{table}.{tool}"), value)?))
    };
    raw.iter().map(checked).collect()
}

fn concurrency(key: &str, count: u32) -> Result<u32, String> {
    if (1..=limits::LIVE_SANDBOXES).contains(&count) {
        Ok(count)
    } else {
        Err(format!("`{key}` is {count}; 1 to {} are accepted", limits::LIVE_SANDBOXES))
    }
}

/// Expands a leading `~/` to the user's home directory.
pub(super) fn expand(text: &str) -> PathBuf {
    // A relative home would lead into the current directory, which may be a workspace.
    let home = etcetera::home_dir().ok().filter(|home| home.is_absolute());
    match text.strip_prefix("~/").zip(home) {
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(text),
    }
}

#[cfg(test)]
mod tests;
