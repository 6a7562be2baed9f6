//! The rule that a project's file only tightens settings: the user has not written that file.

use super::{Settings, stricter};
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
        if !project.only.iter().flatten().all(|tool| self.is_in_only(tool)) {
            return loosens("tools.only".to_owned());
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
        // The setting holds for every class, so it may not be above the default of any.
        let defaults = SideEffects::ALL.into_iter().map(limits::default_timeout);
        let time = self.timeout.value.or(defaults.min());
        if project.timeout > time {
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
        // Path rules of a project add to the user's, so they never loosen.
        if project.paths.commands.is_some_and(|given| given > self.paths.commands.value) {
            return loosens("paths.commands".to_owned());
        }
        if project.journal != JournalConfig::default() {
            return loosens("journal".to_owned());
        }
        if project.network != NetworkConfig::default() {
            return loosens("network.name_server".to_owned());
        }
        if !project.adapted.is_empty() {
            return loosens("adapt".to_owned());
        }
        if !project.directories.is_empty() {
            return loosens("plugins.directories".to_owned());
        }
        if let Some(name) = project.servers.keys().next() {
            return loosens(format!("mcp.servers.{name}"));
        }
        if !project.keys.is_empty() {
            return loosens("plugins.keys".to_owned());
        }
        for (name, table) in &project.plugins {
            let none = PluginOptions::default();
            let own = self.plugins.get(name).unwrap_or(&none);
            if let Some(key) = own.loosened_by(table, self.memory.value) {
                return loosens(format!("plugins.{name}.{key}"));
            }
        }
        if project.builtin == Some(true) && self.builtin.value != Shipped::Included {
            return loosens("plugins.builtin".to_owned());
        }
        Ok(())
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
