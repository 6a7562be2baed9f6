//! `palisade inspect`: shows a tool or a plugin file in full.

mod layout;
mod not_loaded;

pub(super) use layout::fact;

use super::args::{Common, Inspect};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::wrap::{columns, hanging};
use super::{hint, list, offers, setup, trust, wishes};
use crate::config::Settings;
use layout::{BAR, FACTS, heading, schema};
use palisade::internal::{Power, sandbox_contents};
use palisade::plugins::{Plugin, name_of_file};
use palisade::registry::Registered;
use palisade::sandbox::{Import, World};
use palisade::{Definition, Host, SideEffects};
use palisade_mcp_client::sandbox_of as sandbox_of_server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &Inspect) -> Result<Exit, Failure> {
    let settings = setup::settings(common)?;
    if not_loaded::is_file(&args.subject) {
        return not_loaded::file(common, setup::alone(common, &settings)?, args);
    }
    let host = setup::builder(common, &settings)?.build_for(&args.subject)?;
    let tool = match host.registry().get(&args.subject) {
        Ok(tool) => tool,
        Err(missing) => {
            return not_loaded::unapproved(common, &host, args)
                .or_else(|| named(common, &settings, &host, args))
                .or_else(|| not_loaded::shipped(common, &settings, &host, args))
                .unwrap_or_else(|| Err(not_found(common, &missing)));
        }
    };
    setup::show_undecided(common, &host, &[&args.subject]);
    let plugin = host.plugin_of(&tool);
    if args.json {
        let mut shown = tool_json(&tool, plugin.as_ref());
        offers::add_to(&mut shown, plugin.as_slice());
        if let Some(plugin) = &plugin {
            add_left_out(&mut shown, plugin);
            shown["wishes"] = wishes::json(common, plugin, None);
        }
        shown["approval"] = json!(plugin.as_ref().map(list::approval));
        output::json(&shown)?;
    } else {
        let room = columns(std::io::stdout());
        let of_plugin = plugin
            .as_ref()
            .map(|plugin| plugin_text(plugin, room) + &wishes::text(common, plugin, None, room));
        let power = plugin.as_ref().map_or(Power::Class, power);
        let of_tool = tool_text(tool.definition(), power, room);
        let approval = approval(common, plugin.as_ref(), room)?;
        output::text(&(of_tool + &of_plugin.unwrap_or_default() + &approval))?;
    }
    Ok(Exit::Ok)
}

/// Shows the plugin of this name, or returns `None` if there is none. A file that was rejected for
/// want of a grant or an approval is looked at alone.
fn named(
    common: &Common,
    settings: &Settings,
    host: &Host,
    args: &Inspect,
) -> Option<Result<Exit, Failure>> {
    let is_named = |plugin: &Plugin| plugin.name() == args.subject;
    if let Some(plugin) = host.plugins().into_iter().find(is_named) {
        return Some(loaded(common, host, &plugin, args));
    }
    let rejected = host.rejected();
    let file = rejected.iter().find(|it| name_of_file(Path::new(&it.file)) == args.subject)?;
    output::quoting_note(&format!("`{}` is rejected: {}", args.subject, file.reason));
    let args = Inspect { subject: file.file.clone(), json: args.json };
    Some(
        setup::alone(common, settings).and_then(|builder| not_loaded::file(common, builder, &args)),
    )
}

/// Shows a loaded plugin with its tools.
fn loaded(common: &Common, host: &Host, plugin: &Plugin, args: &Inspect) -> Result<Exit, Failure> {
    if args.json {
        let mut shown = plugin_json(host, plugin);
        shown["approval"] = json!(list::approval(plugin));
        shown["wishes"] = wishes::json(common, plugin, None);
        output::json(&shown)?;
    } else {
        let room = columns(std::io::stdout());
        let wishes = wishes::text(common, plugin, None, room);
        let approval = approval(common, Some(plugin), room)?;
        output::text(&(plugin_with_tools(plugin, room) + &wishes + &approval))?;
    }
    Ok(Exit::Ok)
}

/// Says why a loaded plugin may be called, with the signer of an approved one.
fn approval(common: &Common, plugin: Option<&Plugin>, room: usize) -> Result<String, Failure> {
    let Some(plugin) = plugin else { return Ok(String::new()) };
    let signer = trust::of_all(common)?.signer(plugin.name(), plugin.digest());
    let state = list::approval(plugin);
    let shown = match signer {
        Some(signer) if state == "approved" => format!("{state}, signed with {signer}"),
        _ => state.to_owned(),
    };
    Ok(fact("approval", &shown, room))
}

/// Returns the tool of a plugin that sessions see under this name.
fn definition_of<'a>(plugin: &'a Plugin, tool: &str) -> Option<&'a Definition> {
    let mut definitions = plugin.tools().iter().map(|tool| tool.definition());
    definitions.find(|definition| definition.name().as_str() == tool)
}

fn not_found(common: &Common, missing: &palisade::registry::ToolNotFound) -> Failure {
    let hint = match missing.nearest() {
        [] => format!("; `{}` shows the tools there are", hint::command(common, "list")),
        names => format!("; did you mean `{}`?", names.join("` or `")),
    };
    Failure::new(Exit::NotFound, format!("{missing}{hint}"))
}

/// Returns a plugin of a host, with its tools.
pub(super) fn plugin_json(host: &Host, plugin: &Plugin) -> Value {
    let (name, digest) = (Some(plugin.name()), Some(plugin.digest()));
    let mut tools = host.registry().tools();
    tools.retain(|tool| (tool.origin().plugin(), tool.origin().digest()) == (name, digest));
    let tools: Vec<Value> = tools.iter().map(|tool| tool_json(tool, Some(plugin))).collect();
    let mut shown = json!({"plugin": plugin.name(), "file": plugin.file(), "digest": plugin.digest().to_string(), "imports": imports(plugin), "grants": plugin.grants(), "tools": tools});
    offers::add_to(&mut shown, std::slice::from_ref(plugin));
    add_left_out(&mut shown, plugin);
    shown
}

/// Formats a plugin with its tools as [`plugin_with_tools`] does, with the interfaces that every
/// plugin may have on one line.
pub(super) fn plugin_to_approve(plugin: &Plugin, room: usize) -> String {
    let tools: Vec<String> =
        plugin.definitions().iter().map(|tool| tool_text(tool, power(plugin), room)).collect();
    tools.join("\n") + &plugin_facts(plugin, &summed_imports(plugin, room), room)
}

/// Formats the tool of an MCP server, whose schemas are on few lines: a server has many tools.
pub(super) fn tool_of_server(definition: &Definition, room: usize) -> String {
    let mut text = head_of_tool(definition, room);
    text.push_str(&fact("class", definition.side_effects().as_str(), room));
    text.push_str(&fact("input", &definition.parameters().to_string(), room));
    if let Some(output) = definition.output_schema() {
        text.push_str(&fact("output", &output.as_value().to_string(), room));
    }
    text
}

/// Sums up the imports of WASI that reach nothing outside of the sandbox.
fn summed_imports(plugin: &Plugin, room: usize) -> String {
    let (plain, special): (Vec<_>, Vec<_>) = plugin.imports().iter().partition(|import| {
        let is_of = |package: &str| import.name.starts_with(package);
        is_of("wasi:") && !is_of("wasi:http") && !is_of("wasi:sockets")
    });
    let line = |import: &&Import| fact("", &format!("{}: {}", import.name, import.meaning), room);
    let special: String = special.iter().map(line).collect();
    let names: BTreeSet<&str> =
        plain.iter().filter_map(|import| import.name.split('/').next()).collect();
    let plain = match plain.len() {
        0 => String::new(),
        count => {
            let names: Vec<&str> = names.into_iter().collect();
            let names = names.join(", ");
            fact("", &format!("{count} interfaces of WASI, within the sandbox: {names}"), room)
        }
    };
    special + &plain
}

/// Formats a plugin with its tools.
pub(super) fn plugin_with_tools(plugin: &Plugin, room: usize) -> String {
    let tools: Vec<String> =
        plugin.definitions().iter().map(|tool| tool_text(tool, power(plugin), room)).collect();
    tools.join("\n") + &plugin_text(plugin, room)
}

/// Adds the functions that are no tools, of a component of another world.
fn add_left_out(shown: &mut Value, plugin: &Plugin) {
    let left_out = plugin.left_out().iter();
    let left_out: Vec<Value> =
        left_out.map(|it| json!({"function": it.function, "reason": it.reason})).collect();
    if let World::Functions(_) = plugin.world() {
        shown["left_out"] = left_out.into();
    }
}

fn imports(plugin: &Plugin) -> Vec<Value> {
    plugin
        .imports()
        .iter()
        .map(|import| json!({"name": import.name, "gets": import.meaning}))
        .collect()
}

fn tool_json(tool: &Arc<Registered>, plugin: Option<&Plugin>) -> Value {
    let definition = tool.definition();
    let mut value = list::entry(tool);
    value["title"] = json!(definition.title());
    value["output_schema"] =
        json!(definition.output_schema().map(palisade::tool::schema::Schema::as_value));
    value["idempotent"] = json!(definition.is_idempotent());
    value["timeout_ms"] = json!(
        definition.timeout().map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
    );
    value["metadata"] = Value::Object(definition.metadata().clone());
    let power = plugin.map_or(Power::Class, power);
    value["sandbox"] = json!(contents(definition, power));
    value["imports"] = json!(plugin.map(imports));
    value["grants"] = json!(plugin.map(Plugin::grants));
    value
}

fn tool_text(definition: &Definition, power: Power, room: usize) -> String {
    let class = definition.side_effects();
    let mut text = head_of_tool(definition, room);
    text.push_str(&fact("class", class.as_str(), room));
    text.push_str(&fact("sandbox", contents(definition, power), room));
    text.push_str(&schema("input", definition.parameters(), room));
    if let Some(output) = definition.output_schema() {
        text.push_str(&schema("output", output.as_value(), room));
    }
    text + &notes(definition, room)
}

/// Formats the name, the title and the description of a tool.
fn head_of_tool(definition: &Definition, room: usize) -> String {
    let title = definition.title().unwrap_or_default();
    let mut text = heading(definition.name().as_str(), title, room);
    definition.description().lines().for_each(|line| text.push_str(&hanging(BAR, BAR, line, room)));
    text.push('\n');
    text
}

/// Returns what a call of a tool holds: its sandbox, or the rights of its MCP server's process.
fn contents(definition: &Definition, power: Power) -> &str {
    sandbox_of_server(definition)
        .unwrap_or_else(|| sandbox_contents(definition.side_effects(), power))
}

/// Formats what holds for few tools: another name than their own, a timeout, metadata, and that a
/// repeated call does more than one call.
fn notes(definition: &Definition, room: usize) -> String {
    let mut text = String::new();
    if definition.own_name() != definition.name() {
        let own = definition.own_name();
        text.push_str(&fact("own name", &format!("{own}, which permissions name"), room));
    }
    if definition.side_effects() > SideEffects::Read && !definition.is_idempotent() {
        text.push_str(&fact(
            "repeated",
            "a second call with the same input may have a further effect",
            room,
        ));
    }
    if let Some(timeout) = definition.timeout() {
        text.push_str(&fact("timeout", &format!("{} ms", timeout.as_millis()), room));
    }
    // That of the tool of a server says what is shown above.
    if !definition.metadata().is_empty() && sandbox_of_server(definition).is_none() {
        text.push_str(&schema("metadata", &json!(definition.metadata()), room));
    }
    text
}

/// Returns the contents of the sandbox that the tools of a class get, with more grants than the
/// plugin has.
pub(super) fn sandbox_with(
    plugin: &Plugin,
    granted: &[String],
    class: SideEffects,
) -> &'static str {
    let grants = [&plugin.grants(), granted].concat();
    sandbox_contents(class, Power::of(&grants))
}

/// Returns the power of a plugin's tools.
fn power(plugin: &Plugin) -> Power {
    Power::of(&plugin.grants())
}

fn plugin_text(plugin: &Plugin, room: usize) -> String {
    let rows: Vec<Vec<Cell>> = plugin
        .imports()
        .iter()
        .map(|import| vec![format!("{FACTS}{}", import.name).into(), import.meaning.into()])
        .collect();
    plugin_facts(plugin, &output::table(&rows), room)
}

fn plugin_facts(plugin: &Plugin, imports: &str, room: usize) -> String {
    format!(
        "\n{}{}{}{}{}  imports\n{}{}",
        heading(plugin.name(), plugin.file(), room),
        fact("digest", &plugin.digest().to_string(), room),
        world(plugin, room),
        grants(plugin, room),
        offers::of(plugin, room),
        imports,
        left_out(plugin),
    )
}

/// Lists what is granted to a plugin.
fn grants(plugin: &Plugin, room: usize) -> String {
    plugin.grants().iter().map(|grant| fact("granted", grant, room)).collect()
}

/// Says that a plugin is a component of another world, if it is one.
fn world(plugin: &Plugin, room: usize) -> String {
    match plugin.world() {
        World::Tool => String::new(),
        World::Functions(_) => {
            fact("world", "another one; its functions are tools of a class that you chose", room)
        }
    }
}

/// Lists the functions that are no tools.
fn left_out(plugin: &Plugin) -> String {
    let rows: Vec<Vec<Cell>> = plugin
        .left_out()
        .iter()
        .map(|it| vec![format!("{FACTS}{}", it.function).into(), Cell::sentence(&it.reason)])
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("  left out\n{}", output::table(&rows))
}
