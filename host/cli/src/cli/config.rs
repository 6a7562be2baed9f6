//! `palisade config show`: every setting with its origin.

use super::args::{Common, Config, ConfigAction};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::{setup, unused_rules};
use crate::config::{JournalSettings, McpPlace, Settings, Value};
use palisade::SideEffects;
use palisade::plugins::Shipped;
use palisade::sandbox::limits;
use palisade_trust::TrustedKey;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Prefixes of the keys that exist once per tool or per workspace.
const TABLES: [&str; 6] = [
    "confirm.tools.",
    "trusted ",
    "limits.tool_concurrency.",
    "limits.tool_timeout.",
    "plugins.",
    "adapt ",
];
/// Maximum number of keys shown per prefix and file.
const MAX_RULES: usize = 50;

pub(super) fn run(common: &Common, args: &Config) -> Result<Exit, Failure> {
    let ConfigAction::Show { json } = args.action;
    let settings = setup::settings(common)?;
    let rows = rows(&settings);
    if json {
        let values: serde_json::Map<_, _> = rows
            .into_iter()
            .map(|[key, value, origin]| (key, json!({"value": value, "origin": origin})))
            .collect();
        output::json(&serde_json::Value::Object(values))?;
    } else {
        let table: Vec<Vec<Cell>> = shortened(rows)
            .into_iter()
            .map(|[key, value, origin]| [key, value, format!("# {origin}")].map(Cell::from).into())
            .collect();
        output::text(&output::table(&table))?;
    }
    unused_rules::show_after_loading(common, &settings);
    Ok(Exit::Ok)
}

fn rows(settings: &Settings) -> Vec<[String; 3]> {
    let mut rows: Vec<[String; 3]> = settings
        .classes
        .iter()
        .map(|(class, mode)| row(&format!("confirm.{class}"), mode, ToString::to_string))
        .collect();
    rows.extend(
        settings
            .tools
            .iter()
            .map(|(tool, mode)| row(&format!("confirm.tools.{tool}"), mode, ToString::to_string)),
    );
    rows.push(row("confirm.timeout", &settings.confirm_timeout, |time| {
        humantime::format_duration(*time).to_string()
    }));
    for trusted in &settings.trusted {
        let modes: Vec<String> =
            trusted.overrides.iter().map(|(class, mode)| format!("{class} = {mode}")).collect();
        let origin = "your file".to_owned();
        rows.push([format!("trusted {}", trusted.workspace.display()), modes.join(", "), origin]);
    }
    let size = |bytes: &u64| bytesize::ByteSize(*bytes).display().iec().to_string();
    rows.push(row("limits.memory", &settings.memory, size));
    rows.push(row("limits.total_memory", &settings.total_memory, size));
    rows.push(row("limits.timeout", &settings.timeout, |time| match time {
        Some(time) => humantime::format_duration(*time).to_string(),
        None => default_times(),
    }));
    rows.push(row("limits.compile_time", &settings.compile_time, |time| {
        humantime::format_duration(*time).to_string()
    }));
    rows.push(row("limits.compile_memory", &settings.compile_memory, size));
    rows.push(row("limits.concurrency", &settings.concurrency, ToString::to_string));
    for (tool, count) in &settings.tool_concurrency {
        rows.push(row(&format!("limits.tool_concurrency.{tool}"), count, ToString::to_string));
    }
    for (tool, time) in &settings.tool_timeout {
        let shown = |time: &Duration| humantime::format_duration(*time).to_string();
        rows.push(row(&format!("limits.tool_timeout.{tool}"), time, shown));
    }
    let listed =
        |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    rows.push(row("tools.hide", &settings.hide, listed));
    rows.push(row("tools.only", &settings.only, |only| match only {
        Some(names) => listed(names),
        None => "all".to_owned(),
    }));
    rows.push(row("shell.unconfined", &settings.shell_unconfined, ToString::to_string));
    rows.push(row("shell.network", &settings.shell_network, ToString::to_string));
    rows.push(row("shell.processes", &settings.shell_processes, ToString::to_string));
    rows.push(row("shell.memory", &settings.shell_memory, size));
    rows.push(row("workspace.may_hang", &settings.may_hang, ToString::to_string));
    rows.push(row("workspace.hard_links", &settings.hard_links, ToString::to_string));
    for lists in &settings.paths.lists {
        let given = lists.value.shown().into_iter();
        rows.extend(given.filter_map(|(key, shown)| {
            Some([format!("paths.{key}"), shown?, lists.origin.to_string()])
        }));
    }
    rows.push(row("paths.commands", &settings.paths.commands, ToString::to_string));
    rows.push(row("plugins.directories", &settings.directories, |list| {
        list.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    }));
    rows.push(row("plugins.builtin", &settings.builtin, |shipped| {
        (*shipped == Shipped::Included).to_string()
    }));
    rows.push(row("plugins.keys", &settings.keys, |keys| {
        let shown = |key: &TrustedKey| match &key.source {
            Some(source) => format!("{} for {source}", key.signer),
            None => key.signer.to_string(),
        };
        keys.iter().map(shown).collect::<Vec<_>>().join(", ")
    }));
    for (name, plugin) in &settings.plugins {
        let rows_of = plugin.shown().into_iter();
        let rows_of = rows_of.map(|(key, shown, origin)| {
            [format!("plugins.{name}.{key}"), shown, origin.to_string()]
        });
        rows.extend(rows_of);
    }
    for adapted in &settings.adapted {
        let key = format!("adapt {}", adapted.value.file.display());
        rows.push(row(&key, adapted, |adapted| match &adapted.wit {
            Some(wit) => format!("class = {}, wit = {}", adapted.class, wit.display()),
            None => format!("class = {}", adapted.class),
        }));
    }
    for (name, server) in &settings.servers {
        let key = format!("mcp.servers.{name}");
        rows.push(row(&key, server, |server| match &server.place {
            McpPlace::Command(command) => format!("command = {}", command.program),
            // A query may hold a secret.
            McpPlace::Url(url) => {
                format!("url = {}", url.url.split(['?', '#']).next().unwrap_or_default())
            }
        }));
    }
    rows.extend(journal(&settings.journal));
    rows.push(row("network.name_server", &settings.network.name_server, |server| match server {
        Some(server) => server.to_string(),
        None => "that of the system".to_owned(),
    }));
    rows
}

fn journal(settings: &JournalSettings) -> [[String; 3]; 5] {
    let usual = || crate::cli::journal::default_file().unwrap_or_default();
    let file = |file: &Option<PathBuf>| file.clone().unwrap_or_else(usual).display().to_string();
    let age = |age: &Duration| humantime::format_duration(*age).to_string();
    let size = |bytes: &u64| bytesize::ByteSize(*bytes).display().iec().to_string();
    [
        row("journal.file", &settings.file, file),
        row("journal.inputs", &settings.inputs, ToString::to_string),
        row("journal.max_age", &settings.max_age, age),
        row("journal.max_size", &settings.max_size, size),
        row("journal.calls", &settings.calls, ToString::to_string),
    ]
}

/// Describes the library's default times: the least one, and the classes that have more.
fn default_times() -> String {
    let mut classes = BTreeMap::<Duration, Vec<&str>>::new();
    for class in SideEffects::ALL {
        classes.entry(limits::default_timeout(class)).or_default().push(class.as_str());
    }
    let least = classes.pop_first().map(|(time, _)| humantime::format_duration(time).to_string());
    let more: Vec<String> = classes
        .into_iter()
        .map(|(time, of)| format!("{} for {}", humantime::format_duration(time), of.join(" and ")))
        .collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    least.unwrap_or_default() + &more
}

/// Limits each table of each file to its first [`MAX_RULES`] rows plus a count of the rest.
/// `--json` is not shortened.
fn shortened(rows: Vec<[String; 3]>) -> Vec<[String; 3]> {
    let mut shown = Vec::new();
    let mut counts = BTreeMap::<(&str, String), usize>::new();
    for row in rows {
        let [key, _, origin] = &row;
        let table = TABLES.into_iter().find(|table| key.starts_with(table));
        let count = table.map_or(0, |table| {
            let count = counts.entry((table, origin.clone())).or_default();
            *count += 1;
            *count
        });
        if count <= MAX_RULES {
            shown.push(row);
        }
    }
    let more = counts.into_iter().filter(|(_, count)| *count > MAX_RULES);
    shown.extend(more.map(|((table, origin), count)| {
        [format!("{table}…"), format!("{} more", count - MAX_RULES), origin]
    }));
    shown
}

fn row<T>(key: &str, value: &Value<T>, show: impl Fn(&T) -> String) -> [String; 3] {
    [key.to_owned(), show(&value.value), value.origin.to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_times_are_those_of_the_library() {
        assert_eq!(default_times(), "1m (10m for execute and network)");
    }
}
