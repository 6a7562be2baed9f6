//! Resolves the effective settings and the origin of each value.

mod tighten;
mod value;

use super::adapted::Adapted;
use super::file::{ConfigError, FileConfig, FileOf, Trusted};
use super::journal::JournalSettings;
use super::network::NetworkSettings;
use super::paths::PathSettings;
use super::plugins::{self, Effect, PluginOptions};
use super::rule::ToolRule;
use super::servers::McpServer;
use super::size;
use super::time::call_time;
use palisade::internal::{CONCURRENCY, CONFIRMATION_TIMEOUT, ToolTime};
use palisade::plugins::Shipped;
use palisade::policy::{Mode, Policy};
use palisade::sandbox::{
    CompileLimits,
    limits::{self, Limits},
};
use palisade::workspace::HardLinks;
use palisade::{Advertised, Allowed, SideEffects};
use palisade_mcp_client::ServerName;
use palisade_shell::{Confinement, Network, ShellLimits, ShellOptions};
use palisade_trust::TrustedKey;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
pub use value::{Origin, Value};

/// The effective settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Modes of side-effect classes.
    pub classes: BTreeMap<SideEffects, Value<Mode>>,
    /// Modes of tools, keyed by name or `plugin/tool`.
    pub tools: BTreeMap<String, Value<Mode>>,
    /// Memory limit of a call, in bytes.
    pub memory: Value<u64>,
    /// Memory limit of all calls together, in bytes.
    pub total_memory: Value<u64>,
    /// Timeout of a call; the default depends on the class.
    pub timeout: Value<Option<Duration>>,
    /// Time limit for compiling one plugin.
    pub compile_time: Value<Duration>,
    /// Address space limit for compiling one plugin, in bytes.
    pub compile_memory: Value<u64>,
    /// Plugin directories.
    pub directories: Value<Vec<PathBuf>>,
    /// Whether the shipped plugins are loaded, and whether their names stay reserved otherwise.
    pub builtin: Value<Shipped>,
    /// Settings of single plugins, by name.
    pub plugins: BTreeMap<String, PluginOptions>,
    /// The keys of plugins' authors. Only set by the user's own file.
    pub keys: Value<Vec<TrustedKey>>,
    /// Tools that are not shown to models, each by name or `plugin/tool`.
    pub hide: Value<BTreeSet<String>>,
    /// The only tools that may be called, each by name or `plugin/tool`; all without a list.
    pub only: Value<Option<BTreeSet<String>>>,
    /// Timeout of a confirmation.
    pub confirm_timeout: Value<Duration>,
    /// Maximum number of concurrent calls per session.
    pub concurrency: Value<u32>,
    /// Maximum number of concurrent calls of one tool per session.
    pub tool_concurrency: BTreeMap<String, Value<u32>>,
    /// Timeout of calls of one tool.
    pub tool_timeout: BTreeMap<String, Value<Duration>>,
    /// Tools whose timeout only the project sets: an upper bound for the tool's own, unknown here.
    pub lowered_by_project: BTreeSet<String>,
    /// Whether `shell` may run without confinement where none is available.
    pub shell_unconfined: Value<bool>,
    /// Whether commands of `shell` may use the network.
    pub shell_network: Value<bool>,
    /// Maximum number of processes of a `shell` command.
    pub shell_processes: Value<u64>,
    /// Resident memory limit of all processes of a `shell` command, in bytes.
    pub shell_memory: Value<u64>,
    /// Whether calls run on separate threads, because the workspace may block in the kernel.
    pub may_hang: Value<bool>,
    /// Whether files with several hard links may be changed.
    pub hard_links: Value<HardLinks>,
    /// Workspaces in which a prompt becomes auto, except for their overrides. Only set by the
    /// user's own file.
    pub trusted: Vec<Trusted>,
    /// Components of other worlds, with the origin of each. Only set by the user's own file and
    /// the command line.
    pub adapted: Vec<Value<Adapted>>,
    /// The journal. Only set by the user's own file.
    pub journal: JournalSettings,
    /// The network of plugins. Only set by the user's own file.
    pub network: NetworkSettings,
    /// Path rules.
    pub paths: PathSettings,
    /// MCP servers as sources of tools. Only set by the user's own file.
    pub servers: BTreeMap<ServerName, Value<McpServer>>,
}

impl Default for Settings {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            classes: SideEffects::ALL
                .into_iter()
                .map(|class| (class, Value::default(policy.class(class))))
                .collect(),
            tools: BTreeMap::new(),
            memory: Value::default(limits::MEMORY),
            total_memory: Value::default(limits::total_memory()),
            timeout: Value::default(None),
            compile_time: Value::default(CompileLimits::TIME),
            compile_memory: Value::default(CompileLimits::MEMORY),
            directories: Value::default(Vec::new()),
            builtin: Value::default(Shipped::Included),
            plugins: BTreeMap::new(),
            keys: Value::default(Vec::new()),
            hide: Value::default(BTreeSet::new()),
            only: Value::default(None),
            confirm_timeout: Value::default(CONFIRMATION_TIMEOUT),
            concurrency: Value::default(CONCURRENCY),
            tool_concurrency: BTreeMap::new(),
            tool_timeout: BTreeMap::new(),
            lowered_by_project: BTreeSet::new(),
            shell_unconfined: Value::default(false),
            shell_network: Value::default(false),
            shell_processes: Value::default(ShellLimits::PROCESSES),
            shell_memory: Value::default(ShellLimits::default_memory()),
            // A process usually runs few calls: a reliable deadline is worth more than a tenth of a
            // millisecond per call.
            may_hang: Value::default(true),
            hard_links: Value::default(HardLinks::Refuse),
            trusted: Vec::new(),
            adapted: Vec::new(),
            journal: JournalSettings::default(),
            network: NetworkSettings::default(),
            paths: PathSettings::default(),
            servers: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Reads the user's file and then the project's.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if a file cannot be read or is not valid, or if the project's file loosens a
    /// setting.
    pub fn from_files(user_file: &Path, project_file: &Path) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        if let Some(mut user) = FileConfig::read(user_file, FileOf::User)? {
            let origin = || Origin::File(user_file.to_owned());
            settings.builtin.set(user.builtin.map(chosen), origin);
            let tables = std::mem::take(&mut user.plugins);
            plugins::apply(&mut settings.plugins, tables, Effect::Replaces, origin);
            settings.apply(user, user_file);
        }
        if let Some(mut project) = FileConfig::read(project_file, FileOf::Project)? {
            settings.check_tightens(&project).map_err(|key| ConfigError::Loosens {
                path: project_file.to_owned(),
                key,
                user_file: user_file.to_owned(),
            })?;
            let named = project
                .tool_timeout
                .keys()
                .filter(|tool| !settings.tool_timeout.contains_key(*tool));
            settings.lowered_by_project = named.cloned().collect();
            let switched_off = settings.switched_off(&project);
            let origin = || Origin::File(project_file.to_owned());
            settings.builtin.set(switched_off, origin);
            let tables = std::mem::take(&mut project.plugins);
            plugins::apply(&mut settings.plugins, tables, Effect::Lowers, origin);
            settings.apply(project, project_file);
        }
        Ok(settings)
    }

    /// Applies the environment variables `PALISADE_MEMORY` and `PALISADE_TIMEOUT`.
    ///
    /// # Errors
    ///
    /// The reason why a variable is invalid.
    pub fn apply_environment(
        &mut self,
        variable: impl Fn(&'static str) -> Option<String>,
    ) -> Result<(), String> {
        let memory = variable("PALISADE_MEMORY")
            .map(|text| size::memory(&text).map_err(|error| format!("PALISADE_MEMORY: {error}")))
            .transpose()?;
        self.memory.set(memory, || Origin::Environment("PALISADE_MEMORY"));
        let timeout = variable("PALISADE_TIMEOUT")
            .map(|text| call_time("PALISADE_TIMEOUT", &text))
            .transpose()?;
        self.timeout.set(timeout.map(Some), || Origin::Environment("PALISADE_TIMEOUT"));
        Ok(())
    }

    /// Returns the keys that concern a single tool.
    pub fn of_tools(&self) -> impl Iterator<Item = ToolRule<'_>> {
        let modes = self.tools.iter().map(|(tool, mode)| ToolRule::mode(tool, mode));
        let counts = self
            .tool_concurrency
            .iter()
            .map(|(tool, count)| ToolRule::limit("limits.tool_concurrency", tool, count));
        let times = self
            .tool_timeout
            .iter()
            .map(|(tool, time)| ToolRule::limit("limits.tool_timeout", tool, time));
        let hidden = self.hide.value.iter().map(|tool| ToolRule::hide(tool, &self.hide.origin));
        let only = self.only.value.iter().flatten();
        let only = only.map(|tool| ToolRule::only(tool, &self.only.origin));
        modes.chain(counts).chain(times).chain(hidden).chain(only)
    }

    /// Returns the tools that sessions show.
    #[must_use]
    pub fn advertised(&self) -> Advertised {
        Advertised::Except(self.hide.value.iter().cloned().collect())
    }

    /// Returns the tools that sessions may call.
    #[must_use]
    pub fn allowed(&self) -> Allowed {
        match &self.only.value {
            None => Allowed::All,
            Some(names) => Allowed::Only(names.iter().cloned().collect()),
        }
    }

    /// Returns the effective limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            memory: self.memory.value,
            timeout: self.timeout.value,
            total_memory: self.total_memory.value,
        }
    }

    /// Returns the options of `shell`, without a helper.
    #[must_use]
    pub fn shell(&self) -> ShellOptions {
        let held = if self.shell_unconfined.value {
            Confinement::Unconfined
        } else {
            Confinement::Landlock
        };
        let network = if self.shell_network.value { Network::Open } else { Network::Closed };
        ShellOptions::new(held).network(network).limits(self.shell_limits())
    }

    /// Returns the limits of the processes of a command.
    pub(crate) fn shell_limits(&self) -> ShellLimits {
        ShellLimits { processes: self.shell_processes.value, memory: self.shell_memory.value }
    }

    /// Returns whether a tool's configured timeout replaces its own or only bounds it.
    pub(crate) fn tool_time(&self, tool: &str, time: Duration) -> ToolTime {
        if self.lowered_by_project.contains(tool) {
            ToolTime::AtMost(time)
        } else {
            ToolTime::Set(time)
        }
    }

    /// Returns the limits for compiling one plugin.
    #[must_use]
    pub fn compile_limits(&self) -> CompileLimits {
        CompileLimits { time: self.compile_time.value, memory: self.compile_memory.value }
    }

    /// Returns the effective policy for a workspace.
    #[must_use]
    pub fn policy(&self, workspace: &Path) -> Policy {
        let classes = self.classes.iter().map(|(class, mode)| (*class, mode.value));
        let policy =
            classes.fold(Policy::default(), |policy, (class, mode)| policy.with_class(class, mode));
        let policy = self
            .tools
            .iter()
            .fold(policy, |policy, (tool, mode)| policy.with_tool(tool, mode.value));
        let mut entries =
            self.trusted.iter().filter(|trusted| is_same(&trusted.workspace, workspace)).peekable();
        if entries.peek().is_none() {
            return policy;
        }
        // If several entries name one workspace, the strictest mode applies.
        let mut overrides: BTreeMap<SideEffects, Mode> = BTreeMap::new();
        for (class, mode) in entries.flat_map(|trusted| &trusted.overrides) {
            overrides
                .entry(*class)
                .and_modify(|known| *known = stricter(*known, *mode))
                .or_insert(*mode);
        }
        policy.trusting(overrides)
    }

    fn apply(&mut self, config: FileConfig, path: &Path) {
        let origin = || Origin::File(path.to_owned());
        self.confirm_timeout.set(config.confirm_timeout, origin);
        self.concurrency.set(config.concurrency, origin);
        self.trusted.extend(config.trusted);
        let adapted = config.adapted.into_iter();
        self.adapted.extend(adapted.map(|value| Value { value, origin: origin() }));
        self.classes.extend(
            config
                .classes
                .into_iter()
                .map(|(class, value)| (class, Value { value, origin: origin() })),
        );
        self.tools.extend(
            config.tools.into_iter().map(|(tool, value)| (tool, Value { value, origin: origin() })),
        );
        self.memory.set(config.memory, origin);
        self.total_memory.set(config.total_memory, origin);
        self.timeout.set(config.timeout.map(Some), origin);
        self.compile_time.set(config.compile_time, origin);
        self.compile_memory.set(config.compile_memory, origin);
        self.tool_concurrency.extend(
            config
                .tool_concurrency
                .into_iter()
                .map(|(tool, value)| (tool, Value { value, origin: origin() })),
        );
        self.tool_timeout.extend(
            config
                .tool_timeout
                .into_iter()
                .map(|(tool, value)| (tool, Value { value, origin: origin() })),
        );
        self.shell_unconfined.set(config.shell_unconfined, origin);
        self.shell_network.set(config.shell_network, origin);
        self.shell_processes.set(config.shell_processes, origin);
        self.shell_memory.set(config.shell_memory, origin);
        self.may_hang.set(config.may_hang, origin);
        self.hard_links.set(config.hard_links, origin);
        if !config.hide.is_empty() {
            // The lists add up: neither file shows a tool that the other hides.
            let all = self.hide.value.iter().cloned().chain(config.hide).collect();
            self.hide.set(Some(all), origin);
        }
        self.only.set(config.only.map(Some), origin);
        self.journal.apply(config.journal, origin);
        self.network.apply(&config.network, origin);
        self.paths.apply(config.paths, origin);
        let servers = config.servers.into_iter();
        self.servers.extend(servers.map(|(name, value)| (name, Value { value, origin: origin() })));
        self.keys.set(Some(config.keys).filter(|keys| !keys.is_empty()), origin);
        self.directories.set(Some(config.directories).filter(|list| !list.is_empty()), origin);
    }
}

fn chosen(builtin: bool) -> Shipped {
    if builtin { Shipped::Included } else { Shipped::LeftOut }
}

fn stricter(one: Mode, other: Mode) -> Mode {
    if other.is_at_least_as_strict_as(one) { other } else { one }
}

/// Returns true if both paths name one existing directory.
fn is_same(trusted: &Path, workspace: &Path) -> bool {
    matches!((trusted.canonicalize(), workspace.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests;
