//! `palisade.toml`, as written: parsed and checked, with nothing opened and nothing filled in.

use super::size::{compile_memory, memory, processes, shell_memory, total_memory};
use super::time::{Written, call_time, compile_time, confirm_time};
use crate::policy::{Mode, parts};
use crate::sandbox::limits;
use crate::tool::text::visible;
use crate::tool::{SideEffects, ToolName, nearest_names};
use crate::workspace::{HardLinks, LastLink, open_regular};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest configuration file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A file, as written.
#[derive(Debug, Clone, Default)]
pub struct FileConfig {
    /// Modes of classes.
    pub classes: BTreeMap<SideEffects, Mode>,
    /// Modes of tools, each under its name or as `plugin/tool`.
    pub tools: BTreeMap<String, Mode>,
    /// How long a question stands.
    pub confirm_timeout: Option<Duration>,
    /// Workspaces with modes of their own.
    pub trusted: Vec<Trusted>,
    /// Memory of a call, in bytes.
    pub memory: Option<u64>,
    /// Memory of all calls together, in bytes.
    pub total_memory: Option<u64>,
    /// Time of a call.
    pub timeout: Option<Duration>,
    /// Time to compile one plugin.
    pub compile_time: Option<Duration>,
    /// Address space to compile one plugin in, in bytes.
    pub compile_memory: Option<u64>,
    /// Calls of a session that run at once.
    pub concurrency: Option<u32>,
    /// Calls of one tool that a session runs at once.
    pub tool_concurrency: BTreeMap<String, u32>,
    /// Time of a call of one tool.
    pub tool_timeout: BTreeMap<String, Duration>,
    /// Whether `shell` may run where it cannot be confined.
    pub shell_unconfined: Option<bool>,
    /// Whether commands of `shell` may use the network.
    pub shell_network: Option<bool>,
    /// Processes of a command of `shell` at once.
    pub shell_processes: Option<u64>,
    /// Resident memory of all processes of a command of `shell`, in bytes.
    pub shell_memory: Option<u64>,
    /// Whether calls run on threads of their own, since the workspace may hang in the kernel.
    pub may_hang: Option<bool>,
    /// Whether files with several names may be changed.
    pub hard_links: Option<HardLinks>,
    /// Directories of plugins.
    pub directories: Vec<PathBuf>,
    /// Whether the shipped plugins are loaded.
    pub builtin: Option<bool>,
}

/// A workspace with modes of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// The directory.
    pub workspace: PathBuf,
    /// Modes that still hold there.
    pub overrides: BTreeMap<SideEffects, Mode>,
}

/// Why a configuration file is refused. A policy that cannot be read is an error, never an empty policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not valid.
    #[error("`{}` is not a valid configuration: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and why.
        message: String,
    },
    /// A project file tries to loosen something.
    #[error("`{}` may only tighten, and `{key}` would loosen; move it to your own file: {}", path.display(), user_file.display())]
    Loosens {
        /// The project's file.
        path: PathBuf,
        /// The key.
        key: String,
        /// Where it belongs.
        user_file: PathBuf,
    },
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawFile {
    confirm: RawConfirm,
    trusted: Vec<RawTrusted>,
    limits: RawLimits,
    plugins: RawPlugins,
    shell: RawShell,
    workspace: RawWorkspace,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawConfirm {
    none: Option<String>,
    read: Option<String>,
    write: Option<String>,
    execute: Option<String>,
    network: Option<String>,
    timeout: Option<Written>,
    tools: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTrusted {
    workspace: String,
    none: Option<String>,
    read: Option<String>,
    write: Option<String>,
    execute: Option<String>,
    network: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawLimits {
    memory: Option<String>,
    timeout: Option<Written>,
    compile_time: Option<Written>,
    compile_memory: Option<String>,
    total_memory: Option<String>,
    concurrency: Option<u32>,
    tool_concurrency: BTreeMap<String, u32>,
    tool_timeout: BTreeMap<String, Written>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawShell {
    unconfined: Option<bool>,
    network: Option<bool>,
    processes: Option<u64>,
    memory: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawWorkspace {
    may_hang: Option<bool>,
    hard_links: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawPlugins {
    directories: Vec<String>,
    builtin: Option<bool>,
}

impl FileConfig {
    /// Reads a file, if it is there. A link is only followed where `links` says so: a project's file may come from anybody, and errors quote lines.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] where it is there and cannot be read, is not valid, or names a key that does not exist (the nearest one is proposed).
    pub fn read(path: &Path, links: LastLink) -> Result<Option<Self>, ConfigError> {
        let text = match read_text(path, links) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }),
        };
        Self::parse(&text).map(Some).map_err(|message| ConfigError::Invalid { path: path.to_owned(), message })
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where. The file is quoted, which may be anybody's: whatever could draw on a terminal is escaped.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parsed(text).map_err(|message| visible(&message))
    }

    fn parsed(text: &str) -> Result<Self, String> {
        let raw: RawFile = toml::from_str(text).map_err(|error| explain(&error))?;
        let confirm = &raw.confirm;
        let config = Self {
            classes: modes(
                "confirm",
                [&confirm.none, &confirm.read, &confirm.write, &confirm.execute, &confirm.network],
            )?,
            tools: confirm.tools.iter().map(|(tool, mode)| tool_mode(tool, mode)).collect::<Result<_, _>>()?,
            confirm_timeout: confirm.timeout.as_ref().map(|time| confirm_time(&time.0)).transpose()?,
            trusted: raw.trusted.iter().map(trusted).collect::<Result<_, _>>()?,
            memory: raw.limits.memory.as_deref().map(memory).transpose()?,
            timeout: raw.limits.timeout.as_ref().map(|time| call_time("limits.timeout", &time.0)).transpose()?,
            compile_time: raw.limits.compile_time.as_ref().map(|time| compile_time(&time.0)).transpose()?,
            compile_memory: raw.limits.compile_memory.as_deref().map(compile_memory).transpose()?,
            total_memory: raw.limits.total_memory.as_deref().map(total_memory).transpose()?,
            concurrency: raw.limits.concurrency.map(|count| concurrency("limits.concurrency", count)).transpose()?,
            tool_concurrency: per_tool("limits.tool_concurrency", &raw.limits.tool_concurrency, |key, count| {
                concurrency(key, *count)
            })?,
            tool_timeout: per_tool("limits.tool_timeout", &raw.limits.tool_timeout, |key, time| {
                call_time(key, &time.0)
            })?,
            shell_unconfined: raw.shell.unconfined,
            shell_network: raw.shell.network,
            shell_processes: raw.shell.processes.map(processes).transpose()?,
            shell_memory: raw.shell.memory.as_deref().map(shell_memory).transpose()?,
            may_hang: raw.workspace.may_hang,
            hard_links: raw.workspace.hard_links.as_deref().map(hard_links).transpose()?,
            directories: raw.plugins.directories.iter().map(|text| expand(text)).collect(),
            builtin: raw.plugins.builtin,
        };
        Ok(config)
    }
}

fn read_text(path: &Path, links: LastLink) -> io::Result<String> {
    let file = open_regular(path, links)?;
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE { Err(io::Error::other("it is larger than 1 MiB")) } else { Ok(text) }
}

/// toml's own message, with the nearest valid key where an unknown one was given.
fn explain(error: &toml::de::Error) -> String {
    let text = error.to_string().trim_end().to_owned();
    let mut quoted = error.message().split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| error.message().starts_with("unknown field"));
    let nearest = unknown.and_then(|key| nearest_names(key, quoted).into_iter().next());
    match nearest {
        Some(key) => format!("{text}\ndid you mean `{key}`?"),
        None => text,
    }
}

fn modes(table: &str, texts: [&Option<String>; 5]) -> Result<BTreeMap<SideEffects, Mode>, String> {
    let given =
        SideEffects::ALL.into_iter().zip(texts).filter_map(|(class, text)| text.as_deref().map(|text| (class, text)));
    given.map(|(class, text)| Ok((class, mode(&format!("{table}.{class}"), text)?))).collect()
}

fn mode(key: &str, text: &str) -> Result<Mode, String> {
    text.parse().map_err(|error| format!("`{key}`: {error}"))
}

fn tool_mode(name: &str, text: &str) -> Result<(String, Mode), String> {
    let (plugin, tool) = parts(name);
    ToolName::parse(tool).map_err(|error| format!("`confirm.tools`: {error}"))?;
    if plugin == Some("") {
        return Err(format!("`confirm.tools`: `{name}` names no plugin; write \"PLUGIN/{tool}\""));
    }
    Ok((name.to_owned(), mode(&format!("confirm.tools.{name}"), text)?))
}

fn trusted(raw: &RawTrusted) -> Result<Trusted, String> {
    let overrides = modes("trusted", [&raw.none, &raw.read, &raw.write, &raw.execute, &raw.network])?;
    let workspace = expand(&raw.workspace);
    // A relative one would be wherever the program happens to be started.
    if workspace.is_absolute() {
        Ok(Trusted { workspace, overrides })
    } else {
        Err(format!("`trusted.workspace` is `{}`; write the whole path, from `/` or `~/` on", raw.workspace))
    }
}

fn hard_links(text: &str) -> Result<HardLinks, String> {
    text.parse().map_err(|error| format!("`workspace.hard_links`: {error}"))
}

/// A table with one value for each tool.
fn per_tool<R, T>(
    table: &str,
    raw: &BTreeMap<String, R>,
    check: impl Fn(&str, &R) -> Result<T, String>,
) -> Result<BTreeMap<String, T>, String> {
    let checked = |(tool, value): (&String, &R)| {
        ToolName::parse(tool).map_err(|error| format!("`{table}`: {error}"))?;
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

/// `~` stands for the user's home directory.
fn expand(text: &str) -> PathBuf {
    match text.strip_prefix("~/").zip(etcetera::home_dir().ok()) {
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(text),
    }
}

#[cfg(test)]
mod tests;
