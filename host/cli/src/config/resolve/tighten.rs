//! The rule that a project's file only tightens settings: the user has not written that file.

use super::{Settings, Value, stricter};
use crate::config::file::FileConfig;
use crate::config::journal::JournalConfig;
use crate::config::network::NetworkConfig;
use crate::config::plugins::PluginOptions;
use palisade::SideEffects;
use palisade::plugins::Shipped;
use palisade::policy::{Mode, parts};
use palisade::sandbox::limits;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

impl Settings {
    /// Returns the first key by which a project file would loosen a setting, as the error.
    pub(super) fn check_tightens(&self, project: &FileConfig) -> Result<(), String> {
        let loosened = self
            .loosened_rule(project)
            .or_else(|| self.loosened_value(project).map(str::to_owned))
            .or_else(|| self.loosened_plugin(project));
        loosened.map_or(Ok(()), Err)
    }

    /// Returns the first key of a class or a tool by which a project would loosen a setting.
    fn loosened_rule(&self, project: &FileConfig) -> Option<String> {
        let class = project.classes.iter().find_map(|(class, mode)| {
            let own = self.classes.get(class).map_or(Mode::Deny, |own| own.value);
            (!mode.is_at_least_as_strict_as(own)).then(|| format!("confirm.{class}"))
        });
        let mut modes = project.tools.iter();
        let mode = modes.find(|(tool, mode)| !mode.is_at_least_as_strict_as(self.mode_of(tool)));
        let mut counts = project.tool_concurrency.iter();
        let count = counts.find(|(tool, count)| **count > self.concurrency_of(tool));
        let mut times = project.tool_timeout.iter();
        let time = times.find(|(tool, time)| !self.is_within_time_of(tool, **time));
        class
            .or_else(|| mode.map(|(tool, _)| format!("confirm.tools.{tool}")))
            .or_else(|| count.map(|(tool, _)| format!("limits.tool_concurrency.{tool}")))
            .or_else(|| time.map(|(tool, _)| format!("limits.tool_timeout.{tool}")))
    }

    /// Returns the first single key by which a project would loosen a setting.
    fn loosened_value(&self, project: &FileConfig) -> Option<&'static str> {
        // All keys are named, so that a new one does not compile until it is judged here. The other
        // functions judge those of classes, tools, plugins and servers; `hide` only tightens.
        let FileConfig {
            classes: _,
            tools: _,
            tool_concurrency: _,
            tool_timeout: _,
            plugins: _,
            servers: _,
            hide: _,
            confirm_timeout,
            trusted,
            memory,
            total_memory,
            timeout,
            compile_time,
            compile_memory,
            concurrency,
            shell_unconfined,
            shell_network,
            shell_processes,
            shell_memory,
            may_hang,
            hard_links,
            directories,
            builtin,
            keys,
            adapted,
            only,
            journal,
            network,
            paths,
        } = project;
        // The timeout holds for every class, so it may not be above the default of any.
        let default_time = SideEffects::ALL.into_iter().map(limits::default_timeout).min();
        // Path rules of a project are added to the user's, so they never loosen.
        let keys = [
            ("tools.only", !only.iter().flatten().all(|tool| self.is_in_only(tool))),
            ("trusted", !trusted.is_empty()),
            ("limits.memory", is_above(*memory, &self.memory)),
            ("limits.total_memory", is_above(*total_memory, &self.total_memory)),
            ("limits.timeout", *timeout > self.timeout.value.or(default_time)),
            ("limits.compile_time", is_above(*compile_time, &self.compile_time)),
            ("limits.compile_memory", is_above(*compile_memory, &self.compile_memory)),
            ("confirm.timeout", is_above(*confirm_timeout, &self.confirm_timeout)),
            ("limits.concurrency", is_above(*concurrency, &self.concurrency)),
            ("shell.unconfined", is_above(*shell_unconfined, &self.shell_unconfined)),
            ("shell.network", is_above(*shell_network, &self.shell_network)),
            ("shell.processes", is_above(*shell_processes, &self.shell_processes)),
            ("shell.memory", is_above(*shell_memory, &self.shell_memory)),
            ("workspace.may_hang", *may_hang == Some(false) && self.may_hang.value),
            ("workspace.hard_links", is_above(*hard_links, &self.hard_links)),
            ("paths.commands", is_above(paths.commands, &self.paths.commands)),
            ("journal", *journal != JournalConfig::default()),
            ("network.name_server", *network != NetworkConfig::default()),
            ("adapt", !adapted.is_empty()),
            ("plugins.directories", !directories.is_empty()),
            ("plugins.keys", !keys.is_empty()),
            ("plugins.builtin", *builtin == Some(true) && self.builtin.value != Shipped::Included),
        ];
        keys.into_iter().find_map(|(key, is_looser)| is_looser.then_some(key))
    }

    /// Returns the first key of a plugin or a server by which a project would loosen a setting.
    fn loosened_plugin(&self, project: &FileConfig) -> Option<String> {
        if let Some(name) = project.servers.keys().next() {
            return Some(format!("mcp.servers.{name}"));
        }
        let none = PluginOptions::default();
        project.plugins.iter().find_map(|(name, table)| {
            let own = self.plugins.get(name).unwrap_or(&none);
            let key = own.loosened_by(table, self.memory.value)?;
            Some(format!("plugins.{name}.{key}"))
        })
    }

    /// Returns the new state of the shipped plugins if the project turns them off: their names
    /// stay reserved, so that the user's rules for their tools cannot apply to other plugins. A
    /// user who has turned them off has released their names already.
    pub(super) fn switched_off(&self, project: &FileConfig) -> Option<Shipped> {
        (project.builtin == Some(false) && self.builtin.value == Shipped::Included)
            .then_some(Shipped::Reserved)
    }

    /// Returns true if the user's own list has this tool, or there is none.
    fn is_in_only(&self, tool: &str) -> bool {
        let has = |only: &BTreeSet<String>| only.contains(tool) || only.contains(parts(tool).1);
        self.only.value.as_ref().is_none_or(has)
    }

    fn concurrency_of(&self, tool: &str) -> u32 {
        of_tool(&self.tool_concurrency, tool).map_or(self.concurrency.value, |count| count.value)
    }

    /// Returns true if a project may set this time: below the user's own setting, or as a bound on
    /// the tool's timeout.
    fn is_within_time_of(&self, tool: &str, time: Duration) -> bool {
        of_tool(&self.tool_timeout, tool).is_none_or(|set| time <= set.value)
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

/// Returns the user's setting for a tool: under this name, or under the bare name of the tool,
/// which holds for the tool of every plugin.
fn of_tool<'a, T>(settings: &'a BTreeMap<String, T>, tool: &str) -> Option<&'a T> {
    settings.get(tool).or_else(|| settings.get(parts(tool).1))
}

/// Returns true if a project's value is above the user's own. For switches, on is above off.
fn is_above<T: PartialOrd + Copy>(given: Option<T>, own: &Value<T>) -> bool {
    given.is_some_and(|given| given > own.value)
}
