//! `palisade inspect`: shows a tool or a plugin file in full.

use super::args::{Common, Inspect};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::{hint, list, offers, setup, style};
use palisade::plugins::{Plugin, Shipped};
use palisade::registry::Registered;
use palisade::tool::text::visible;
use palisade::{Definition, SideEffects};
use palisade::{Host, HostBuilder};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &Inspect) -> Result<Exit, Failure> {
    let settings = setup::settings(common)?;
    if is_file(&args.subject) {
        let builder = Host::builder()
            .workspace(&common.workspace)
            .shipped(Shipped::LeftOut)
            .limits(settings.limits())
            .cache(setup::cache_mode())
            .compiler(setup::compiler(&settings));
        return file(builder, args);
    }
    let host = setup::builder(common, &settings).build_for(&args.subject)?;
    let tool = host.registry().get(&args.subject).map_err(|missing| not_found(common, &missing))?;
    setup::show_undecided(common, &host, &[&args.subject]);
    let plugin = host.plugin_of(&tool);
    if args.json {
        let mut shown = tool_json(&tool, plugin.as_ref());
        offers::add_to(&mut shown, plugin.as_slice());
        output::json(&shown)?;
    } else {
        output::text(
            &(tool_text(tool.definition()) + &plugin.as_ref().map(plugin_text).unwrap_or_default()),
        )?;
    }
    Ok(Exit::Ok)
}

fn is_file(subject: &str) -> bool {
    subject.contains('/')
        || Path::new(subject).extension().is_some_and(|extension| extension == "wasm")
}

fn not_found(common: &Common, missing: &palisade::registry::ToolNotFound) -> Failure {
    let hint = match missing.nearest() {
        [] => format!("; `{}` shows the tools there are", hint::command(common, "list")),
        names => format!("; did you mean `{}`?", names.join("` or `")),
    };
    Failure::new(Exit::NotFound, format!("{missing}{hint}"))
}

fn file(builder: HostBuilder, args: &Inspect) -> Result<Exit, Failure> {
    if !Path::new(&args.subject).exists() {
        return Err(Failure::new(Exit::NotFound, format!("there is no file `{}`", args.subject)));
    }
    let host = builder.plugin_file(&args.subject).build()?;
    if let Some(rejected) = host.rejected().first() {
        return Err(Failure::new(
            Exit::Invalid,
            format!("`{}` is not a plugin: {}", rejected.file, rejected.reason),
        ));
    }
    let plugins = host.plugins();
    let Some(plugin) = plugins.first() else {
        return Err(Failure::new(Exit::Internal, "the plugin was neither loaded nor rejected"));
    };
    if args.json {
        let tools: Vec<Value> =
            host.registry().tools().iter().map(|tool| tool_json(tool, Some(plugin))).collect();
        let mut shown = json!({"plugin": plugin.name(), "file": plugin.file(), "digest": plugin.digest().to_string(), "imports": imports(plugin), "tools": tools});
        offers::add_to(&mut shown, std::slice::from_ref(plugin));
        output::json(&shown)?;
    } else {
        let tools: Vec<String> = plugin.definitions().iter().map(tool_text).collect();
        output::text(&(tools.join("\n") + &plugin_text(plugin)))?;
    }
    Ok(Exit::Ok)
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
    value["sandbox"] = json!(holds(definition.side_effects()));
    value["imports"] = json!(plugin.map(imports));
    value
}

fn tool_text(definition: &Definition) -> String {
    let mut text = format!(
        "{}  {}\n",
        style::heading(definition.name().as_str()),
        style::faint(definition.title().unwrap_or_default())
    );
    definition.description().lines().for_each(|line| text.push_str(&format!("  │ {line}\n")));
    text.push_str(&format!(
        "\n  class    {}\n  sandbox  {}\n",
        definition.side_effects(),
        holds(definition.side_effects())
    ));
    text.push_str(&format!("  input    {}\n", indented(definition.parameters())));
    if let Some(schema) = definition.output_schema() {
        text.push_str(&format!("  output   {}\n", indented(schema.as_value())));
    }
    text
}

fn indented(value: &Value) -> String {
    visible(&format!("{value:#}")).replace('\n', "\n           ")
}

/// Describes the sandbox of a call of this class.
fn holds(class: SideEffects) -> &'static str {
    match class {
        SideEffects::None => "no files, no network, no environment",
        SideEffects::Read => "the workspace, read-only; no network, no environment",
        SideEffects::Write => "the workspace, read-write; no network, no environment",
        SideEffects::Execute => {
            "the workspace, read-write; a plugin has no programs, network or environment; `shell` runs programs that the kernel confines, with parts of both (SECURITY.md)"
        }
        SideEffects::Network => "no files, no network yet, no environment",
    }
}

fn plugin_text(plugin: &Plugin) -> String {
    let rows: Vec<Vec<Cell>> = plugin
        .imports()
        .iter()
        .map(|import| vec![format!("           {}", import.name).into(), import.meaning.into()])
        .collect();
    format!(
        "\n{}  {}\n  digest   {}\n{}  imports\n{}",
        style::heading(plugin.name()),
        style::faint(plugin.file()),
        plugin.digest(),
        offers::of(plugin),
        output::table(&rows)
    )
}
