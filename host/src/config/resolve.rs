//! What holds in the end, and where each value came from.

use super::file::{ConfigError, FileConfig, Trusted};
use super::rule::ToolRule;
use super::size;
use super::time::call_time;
use crate::dispatch::{CONFIRMATION_TIMEOUT, ToolTime};
use crate::native::shell::Network;
use crate::native::{Confinement, ShellLimits, ShellOptions};
use crate::plugins::Shipped;
use crate::policy::{Mode, Policy};
use crate::sandbox::{CompileLimits, Limits, limits};
use crate::session::CONCURRENCY;
use crate::tool::SideEffects;
use crate::workspace::{HardLinks, LastLink};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// A file.
    File(PathBuf),
    /// A variable of the environment.
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
    /// What holds.
    pub value: T,
    /// Why.
    pub origin: Origin,
}

impl<T> Value<T> {
    fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// Replaces the value where a stronger source gives one.
    pub fn set(&mut self, value: Option<T>, origin: impl FnOnce() -> Origin) {
        if let Some(value) = value {
            *self = Self { value, origin: origin() };
        }
    }
}

/// Everything that can be configured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Modes of classes.
    pub classes: BTreeMap<SideEffects, Value<Mode>>,
    /// Modes of tools, each under its name or as `plugin/tool`.
    pub tools: BTreeMap<String, Value<Mode>>,
    /// Memory of a call, in bytes.
    pub memory: Value<u64>,
    /// Memory of all calls together, in bytes.
    pub total_memory: Value<u64>,
    /// Time of a call; the default depends on the class.
    pub timeout: Value<Option<Duration>>,
    /// Time to compile one plugin.
    pub compile_time: Value<Duration>,
    /// Address space to compile one plugin in, in bytes.
    pub compile_memory: Value<u64>,
    /// Directories of plugins.
    pub directories: Value<Vec<PathBuf>>,
    /// Whether the shipped plugins are loaded, and where they are not, whose their names are.
    pub builtin: Value<Shipped>,
    /// How long a question stands.
    pub confirm_timeout: Value<Duration>,
    /// Calls of a session that run at once.
    pub concurrency: Value<u32>,
    /// Calls of one tool that a session runs at once.
    pub tool_concurrency: BTreeMap<String, Value<u32>>,
    /// Time of a call of one tool.
    pub tool_timeout: BTreeMap<String, Value<Duration>>,
    /// The tools of these times that only a project names: it lowers what each has, which is not known here.
    pub lowered_by_project: BTreeSet<String>,
    /// Whether `shell` may run where it cannot be confined.
    pub shell_unconfined: Value<bool>,
    /// Whether commands of `shell` may use the network.
    pub shell_network: Value<bool>,
    /// Processes of a command of `shell` at once.
    pub shell_processes: Value<u64>,
    /// Resident memory of all processes of a command of `shell`, in bytes.
    pub shell_memory: Value<u64>,
    /// Whether calls run on threads of their own, since the workspace may hang in the kernel.
    pub may_hang: Value<bool>,
    /// Whether files with several names may be changed.
    pub hard_links: Value<HardLinks>,
    /// Workspaces in which a prompt becomes auto, unless their overrides say otherwise. Only the user's own file has them.
    pub trusted: Vec<Trusted>,
}

impl Default for Settings {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            classes: SideEffects::ALL.into_iter().map(|class| (class, Value::default(policy.class(class)))).collect(),
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
            // One call of a program that starts for it: a tenth of a millisecond matters less than that a call always ends.
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
    /// [`ConfigError`] where a file cannot be read or is not valid, or the project's file loosens something.
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
            let named = project.tool_timeout.keys().filter(|tool| !settings.tool_timeout.contains_key(*tool));
            settings.lowered_by_project = named.cloned().collect();
            let switched_off = settings.switched_off(&project);
            settings.builtin.set(switched_off, || Origin::File(project_file.to_owned()));
            settings.apply(project, project_file);
        }
        Ok(settings)
    }

    /// Reads the environment: `PALISADE_MEMORY`, `PALISADE_TIMEOUT`.
    ///
    /// # Errors
    ///
    /// What is wrong with a variable.
    pub fn apply_environment(&mut self, variable: impl Fn(&'static str) -> Option<String>) -> Result<(), String> {
        let memory = variable("PALISADE_MEMORY")
            .map(|text| size::memory(&text).map_err(|error| format!("PALISADE_MEMORY: {error}")))
            .transpose()?;
        self.memory.set(memory, || Origin::Environment("PALISADE_MEMORY"));
        let timeout = variable("PALISADE_TIMEOUT").map(|text| call_time("PALISADE_TIMEOUT", &text)).transpose()?;
        self.timeout.set(timeout.map(Some), || Origin::Environment("PALISADE_TIMEOUT"));
        Ok(())
    }

    /// The keys that are about one tool.
    pub fn of_tools(&self) -> impl Iterator<Item = ToolRule<'_>> {
        let modes = self.tools.iter().map(|(tool, mode)| ToolRule::mode(tool, mode));
        let counts =
            self.tool_concurrency.iter().map(|(tool, count)| ToolRule::limit("limits.tool_concurrency", tool, count));
        let times = self.tool_timeout.iter().map(|(tool, time)| ToolRule::limit("limits.tool_timeout", tool, time));
        modes.chain(counts).chain(times)
    }

    /// The limits that hold.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits { memory: self.memory.value, timeout: self.timeout.value, total_memory: self.total_memory.value }
    }

    /// How `shell` runs commands, without a helper.
    #[must_use]
    pub fn shell(&self) -> ShellOptions {
        let held = if self.shell_unconfined.value { Confinement::Unconfined } else { Confinement::Landlock };
        let network = if self.shell_network.value { Network::Open } else { Network::Closed };
        let limits = ShellLimits { processes: self.shell_processes.value, memory: self.shell_memory.value };
        ShellOptions::new(held).network(network).limits(limits)
    }

    /// How the time that a tool is given here holds.
    pub(crate) fn tool_time(&self, tool: &str, time: Duration) -> ToolTime {
        if self.lowered_by_project.contains(tool) { ToolTime::AtMost(time) } else { ToolTime::Set(time) }
    }

    /// What the compilation of one plugin may take.
    #[must_use]
    pub fn compile_limits(&self) -> CompileLimits {
        CompileLimits { time: self.compile_time.value, memory: self.compile_memory.value }
    }

    /// The policy that holds in a workspace.
    #[must_use]
    pub fn policy(&self, workspace: &Path) -> Policy {
        let classes = self.classes.iter().map(|(class, mode)| (*class, mode.value));
        let policy = classes.fold(Policy::default(), |policy, (class, mode)| policy.with_class(class, mode));
        let policy = self.tools.iter().fold(policy, |policy, (tool, mode)| policy.with_tool(tool, mode.value));
        let mut entries = self.trusted.iter().filter(|trusted| is_same(&trusted.workspace, workspace)).peekable();
        if entries.peek().is_none() {
            return policy;
        }
        // Where several entries name one workspace, the strictest counts.
        let mut overrides: BTreeMap<SideEffects, Mode> = BTreeMap::new();
        for (class, mode) in entries.flat_map(|trusted| &trusted.overrides) {
            overrides.entry(*class).and_modify(|known| *known = stricter(*known, *mode)).or_insert(*mode);
        }
        policy.trusting(overrides)
    }

    fn apply(&mut self, config: FileConfig, path: &Path) {
        let origin = || Origin::File(path.to_owned());
        self.confirm_timeout.set(config.confirm_timeout, origin);
        self.concurrency.set(config.concurrency, origin);
        self.trusted.extend(config.trusted);
        self.classes
            .extend(config.classes.into_iter().map(|(class, value)| (class, Value { value, origin: origin() })));
        self.tools.extend(config.tools.into_iter().map(|(tool, value)| (tool, Value { value, origin: origin() })));
        self.memory.set(config.memory, origin);
        self.total_memory.set(config.total_memory, origin);
        self.timeout.set(config.timeout.map(Some), origin);
        self.compile_time.set(config.compile_time, origin);
        self.compile_memory.set(config.compile_memory, origin);
        self.tool_concurrency
            .extend(config.tool_concurrency.into_iter().map(|(tool, value)| (tool, Value { value, origin: origin() })));
        self.tool_timeout
            .extend(config.tool_timeout.into_iter().map(|(tool, value)| (tool, Value { value, origin: origin() })));
        self.shell_unconfined.set(config.shell_unconfined, origin);
        self.shell_network.set(config.shell_network, origin);
        self.shell_processes.set(config.shell_processes, origin);
        self.shell_memory.set(config.shell_memory, origin);
        self.may_hang.set(config.may_hang, origin);
        self.hard_links.set(config.hard_links, origin);
        self.directories.set(Some(config.directories).filter(|list| !list.is_empty()), origin);
    }

    /// The first key by which a project's file would loosen what holds so far.
    fn check_tightens(&self, project: &FileConfig) -> Result<(), String> {
        let loosens = |key: String| Err(key);
        for (class, mode) in &project.classes {
            let current = self.classes.get(class).map_or(Mode::Deny, |current| current.value);
            if !mode.is_at_least_as_strict_as(current) {
                return loosens(format!("confirm.{class}"));
            }
        }
        if let Some((tool, _)) =
            project.tools.iter().find(|(tool, mode)| !mode.is_at_least_as_strict_as(self.mode_of(tool)))
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
        if let Some((tool, _)) =
            project.tool_concurrency.iter().find(|(tool, count)| **count > self.concurrency_of(tool))
        {
            return loosens(format!("limits.tool_concurrency.{tool}"));
        }
        if let Some((tool, _)) = project.tool_timeout.iter().find(|(tool, time)| !self.is_within_time_of(tool, **time))
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

    /// What becomes of the shipped plugins where a project switches them off: the user's rules for their tools must not come to hold for others. Whoever has
    /// switched them off already has given their names away.
    fn switched_off(&self, project: &FileConfig) -> Option<Shipped> {
        (project.builtin == Some(false) && self.builtin.value == Shipped::Included).then_some(Shipped::Reserved)
    }

    fn concurrency_of(&self, tool: &str) -> u32 {
        self.tool_concurrency.get(tool).map_or(self.concurrency.value, |count| count.value)
    }

    /// A time that the user has set can only be lowered; any other is a bound on the tool's own, and loosens nothing.
    fn is_within_time_of(&self, tool: &str, time: Duration) -> bool {
        self.tool_timeout.get(tool).is_none_or(|set| time <= set.value)
    }

    /// The mode of a tool whose class is not known here: its own under this very name, or the strictest that it may have by
    /// its class. Of what another name of it says nothing is concluded: which plugin has the tool is not known here.
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

/// Two names of one directory. What does not exist is nobody's workspace.
fn is_same(trusted: &Path, workspace: &Path) -> bool {
    matches!((trusted.canonicalize(), workspace.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests;
