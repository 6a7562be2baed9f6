//! `palisade list`: lists the tools.

use super::args::{Common, List};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::unused_rules::{self, Told};
use super::{offers, setup};
use crate::config::Settings;
use palisade::Host;
use palisade::plugins::{Plugin, PluginApproval};
use palisade::registry::Registered;
use palisade::tool::text::elided;
use palisade_mcp_client::server_of;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &List) -> Result<Exit, Failure> {
    let settings = setup::settings(common)?;
    let builder = setup::builder(common, &settings)?;
    let host = if args.now { builder.build_from_cache()? } else { builder.build()? };
    setup::show_missing(&host);
    show_left_out(&host);
    // A plugin that is not compiled may have the tool.
    if host.compiling().is_empty() {
        unused_rules::show(common, &settings, &host, Told::Lists);
    }
    if args.json {
        output::json(&as_json(&host))?;
    } else {
        output::text(&as_table(&host, &settings))?;
    }
    let is_refused = args.strict && !host.rejected().is_empty();
    Ok(if is_refused { Exit::Invalid } else { Exit::Ok })
}

fn as_json(host: &Host) -> Value {
    let with_approval = |tool: &Arc<Registered>| {
        let mut entry = entry(tool);
        entry["approval"] = json!(host.plugin_of(tool).as_ref().map(approval));
        entry
    };
    let tools: Vec<Value> = host.tools(host.session()).iter().map(with_approval).collect();
    let rejected: Vec<Value> =
        host.rejected().iter().map(|r| json!({"file": r.file, "reason": r.reason})).collect();
    let mut listed = json!({"tools": tools, "rejected": rejected});
    let compiling = host.compiling();
    if let (false, Some(listed)) = (compiling.is_empty(), listed.as_object_mut()) {
        let compiling =
            compiling.iter().map(|c| json!({"plugin": c.plugin, "file": c.file})).collect();
        listed.insert("compiling".to_owned(), compiling);
    }
    offers::add_to(&mut listed, &host.plugins());
    listed
}

/// Returns the name of what lets a plugin be called.
pub(super) fn approval(plugin: &Plugin) -> &'static str {
    match (plugin.path(), plugin.approval()) {
        (None, _) => "shipped",
        (_, PluginApproval::Approved) => "approved",
        (_, PluginApproval::ThisRun) => "this run",
        (_, PluginApproval::Missing(_)) => "missing",
        (_, _) => "unknown",
    }
}

pub(super) fn entry(tool: &Registered) -> Value {
    let definition = tool.definition();
    let mut entry = json!({
        "name": definition.name().as_str(),
        "description": definition.description(),
        "parameters": definition.parameters(),
        "side_effects": definition.side_effects().as_str(),
        "plugin": tool.origin().plugin(),
        "digest": tool.origin().digest().map(|digest| digest.to_string()),
    });
    if definition.own_name() != definition.name() {
        entry["own_name"] = definition.own_name().as_str().into();
    }
    entry
}

/// Names the tools that are loaded and not listed: a person may miss one of them.
fn show_left_out(host: &Host) {
    let session = host.session();
    let tools = host.registry().tools();
    let left_out: Vec<&str> = tools
        .iter()
        .filter(|tool| !session.lists(tool))
        .map(|tool| tool.definition().name().as_str())
        .collect();
    if !left_out.is_empty() {
        output::note(&format!(
            "not listed, because the configuration hides or denies them: {}; `palisade config show` \
             says where",
            elided(&left_out.join(", "), MAX_LEFT_OUT)
        ));
    }
}

fn as_table(host: &Host, settings: &Settings) -> String {
    let tools = host.tools(host.session());
    let compiling = host.compiling();
    if host.registry().is_empty() && compiling.is_empty() {
        return output::prose(&match host.rejected().len() {
            0 => format!("There are no tools. {}.", setup::without_tools(settings)),
            1 => "There are no tools: the only plugin file was rejected.".to_owned(),
            count => format!("There are no tools: all {count} plugin files were rejected."),
        });
    }
    let head = ["TOOL", "CLASS", "PLUGIN", "WHAT IT DOES"].map(Cell::heading).into();
    let compiling = compiling
        .iter()
        .map(|c| vec!["…".into(), "compiling".into(), (*c.plugin).into(), (*c.file).into()]);
    let rows: Vec<Vec<Cell>> =
        std::iter::once(head).chain(tools.iter().map(|tool| row(tool))).chain(compiling).collect();
    output::table(&rows) + &offers::table(&host.plugins())
}

fn row(tool: &Registered) -> Vec<Cell> {
    let definition = tool.definition();
    vec![
        definition.name().as_str().into(),
        definition.side_effects().as_str().into(),
        match server_of(definition) {
            Some(server) => format!("{server} (MCP)").into(),
            None => tool.origin().rule_name().into(),
        },
        first_sentence(definition.description()).into(),
    ]
}

/// Maximum length of the shown list of tools that are left out, in characters.
const MAX_LEFT_OUT: usize = 1_024;

/// Maximum length of a listed description, in characters.
const SUMMARY: usize = 90;

/// Returns the first sentence of a description: the rest is addressed to the model.
fn first_sentence(description: &str) -> String {
    let line = description.split("\n\n").next().unwrap_or_default().replace(['\n', '\t'], " ");
    let sentence =
        line.split_once(". ").map_or(line.as_str(), |(first, _)| first).trim_end_matches('.');
    if sentence.chars().count() <= SUMMARY {
        return sentence.to_owned();
    }
    let head: String = sentence.chars().take(SUMMARY).collect();
    format!("{} …", head.rsplit_once(' ').map_or(head.as_str(), |(whole, _)| whole))
}
