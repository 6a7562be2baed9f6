//! Resolves the effective settings and the origin of each value.

use super::file::{ConfigError, FileConfig, Trusted};
use super::rule::ToolRule;
use super::size;
use super::time::call_time;
use palisade::internal::{CONFIRMATION_TIMEOUT, ToolTime};
use palisade::native::shell::Network;
use palisade::native::{Confinement, ShellLimits, ShellOptions};
use palisade::plugins::Shipped;
use palisade::policy::{Mode, Policy};
use palisade::sandbox::{CompileLimits, Limits, limits};
use palisade::session::CONCURRENCY;
use palisade::tool::SideEffects;
use palisade::workspace::{HardLinks, LastLink};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    Default,
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Environment(&'static str),
    /// The command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value<T> {
    /// The effective value.
    pub value: T,
    /// Its origin.
    pub origin: Origin,
}

impl<T> Value<T> {
    fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// Replaces the value if a stronger source gives one.
    pub fn set(&mut self, value: Option<T>, origin: impl FnOnce() -> Origin) {
        if let Some(value) = value {
            *self = Self { value, origin: origin() };
        }
    }
}

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
    /// Whether the built-in plugins are loaded, and whether their names stay reserved otherwise.
    pub builtin: Value<Shipped>,
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
        if let Some(user) = FileConfig::read(user_file, LastLink::Follow)? {
            settings.builtin.set(user.builtin.map(chosen), || Origin::File(user_file.to_owned()));
            settings.apply(user, user_file);
        }
        if let Some(project) = FileConfig::read(project_file, LastLink::Keep)? {
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
            settings.builtin.set(switched_off, || Origin::File(project_file.to_owned()));
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
        modes.chain(counts).chain(times)
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
        let limits =
            ShellLimits { processes: self.shell_processes.value, memory: self.shell_memory.value };
        ShellOptions::new(held).network(network).limits(limits)
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
        self.directories.set(Some(config.directories).filter(|list| !list.is_empty()), origin);
    }

    /// Returns the first key by which a project file would loosen a setting, as the error.
    fn check_tightens(&self, project: &FileConfig) -> Result<(), String> {
        let loosens = |key: String| Err(key);
        for (class, mode) in &project.classes {
            let current = self.classes.get(class).map_or(Mode::Deny, |current| current.value);
            if !mode.is_at_least_as_strict_as(current) {
                return loosens(format!("confirm.{class}"));
            }
        }
        if let Some((tool, _)) = project
            .tools
            .iter()
            .find(|(tool, mode)| !mode.is_at_least_as_strict_as(self.mode_of(tool)))
        {
            return loosens(format!("confirm.tools.{tool}"));
        }
        if !project.trusted.is_empty() {
            return loosens("trusted".to_owned());
        }
        if project.memory.is_some_and(|memory| memory > self.memory.value) {
            return loosens("limits.memory".to_owned());
        }
        if project.total_memory.is_some_and(|memory| memory > self.total_memory.value) {
            return loosens("limits.total_memory".to_owned());
        }
        let time = self.timeout.value.unwrap_or(limits::TIMEOUT);
        if project.timeout.is_some_and(|timeout| timeout > time) {
            return loosens("limits.timeout".to_owned());
        }
        if project.compile_time.is_some_and(|time| time > self.compile_time.value) {
            return loosens("limits.compile_time".to_owned());
        }
        if project.compile_memory.is_some_and(|memory| memory > self.compile_memory.value) {
            return loosens("limits.compile_memory".to_owned());
        }
        if project.confirm_timeout.is_some_and(|timeout| timeout > self.confirm_timeout.value) {
            return loosens("confirm.timeout".to_owned());
        }
        if project.concurrency.is_some_and(|count| count > self.concurrency.value) {
            return loosens("limits.concurrency".to_owned());
        }
        if let Some((tool, _)) = project
            .tool_concurrency
            .iter()
            .find(|(tool, count)| **count > self.concurrency_of(tool))
        {
            return loosens(format!("limits.tool_concurrency.{tool}"));
        }
        if let Some((tool, _)) =
            project.tool_timeout.iter().find(|(tool, time)| !self.is_within_time_of(tool, **time))
        {
            return loosens(format!("limits.tool_timeout.{tool}"));
        }
        if project.shell_unconfined == Some(true) && !self.shell_unconfined.value {
            return loosens("shell.unconfined".to_owned());
        }
        if project.shell_network == Some(true) && !self.shell_network.value {
            return loosens("shell.network".to_owned());
        }
        if project.shell_processes.is_some_and(|count| count > self.shell_processes.value) {
            return loosens("shell.processes".to_owned());
        }
        if project.shell_memory.is_some_and(|memory| memory > self.shell_memory.value) {
            return loosens("shell.memory".to_owned());
        }
        if project.may_hang == Some(false) && self.may_hang.value {
            return loosens("workspace.may_hang".to_owned());
        }
        if project.hard_links.is_some_and(|given| given > self.hard_links.value) {
            return loosens("workspace.hard_links".to_owned());
        }
        if !project.directories.is_empty() {
            return loosens("plugins.directories".to_owned());
        }
        if project.builtin == Some(true) && self.builtin.value != Shipped::Included {
            return loosens("plugins.builtin".to_owned());
        }
        Ok(())
    }

    /// Returns the new state of the built-in plugins if the project turns them off: their names
    /// stay reserved, so that the user's rules for their tools cannot apply to other plugins. A
    /// user who has turned them off has released their names already.
    fn switched_off(&self, project: &FileConfig) -> Option<Shipped> {
        (project.builtin == Some(false) && self.builtin.value == Shipped::Included)
            .then_some(Shipped::Reserved)
    }

    fn concurrency_of(&self, tool: &str) -> u32 {
        self.tool_concurrency.get(tool).map_or(self.concurrency.value, |count| count.value)
    }

    /// Returns true if a project may set this time: below the user's own setting, or as a bound on
    /// the tool's timeout.
    fn is_within_time_of(&self, tool: &str, time: Duration) -> bool {
        self.tool_timeout.get(tool).is_none_or(|set| time <= set.value)
    }

    /// Returns the mode of a tool of unknown class: its rule under this exact name, or else the
    /// strictest mode of any class. A rule under another name of the tool is not considered,
    /// because the plugin of the tool is unknown here.
    fn mode_of(&self, tool: &str) -> Mode {
        let overrides = self.trusted.iter().flat_map(|trusted| trusted.overrides.values().copied());
        let classes = self.classes.values().map(|mode| mode.value);
        let strictest = classes.chain(overrides).fold(Mode::Auto, stricter);
        self.tools.get(tool).map_or(strictest, |mode| mode.value)
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
