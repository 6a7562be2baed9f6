//! Shows plugins that no call can use: a file that is looked at alone, one without approval, and a
//! shipped one without the grant that it needs.

use super::{
    definition_of, imports, plugin_json, plugin_text, plugin_with_tools, power, tool_text, wishes,
};
use crate::cli::args::{Common, Inspect};
use crate::cli::exit::{Exit, Failure};
use crate::cli::output;
use crate::cli::wrap::columns;
use crate::cli::{grants, setup};
use crate::config::Settings;
use palisade::plugins::{Plugin, PluginApproval, Shipped};
use palisade::{Host, HostBuilder};
use palisade_net::Unconnected;
use palisade_trust::ToolWords;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

pub(super) fn is_file(subject: &str) -> bool {
    subject.contains('/')
        || Path::new(subject).extension().is_some_and(|extension| extension == "wasm")
}

/// Shows the plugin of a file, which this host loads alone.
pub(super) fn file(common: &Common, builder: HostBuilder, args: &Inspect) -> Result<Exit, Failure> {
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
    show(common, &host, plugin, Some(&args.subject), args)
}

/// Shows the tool of a plugin that is not approved, with the reason why it cannot be called.
/// Returns `None` if no such plugin has a tool of this name.
pub(super) fn unapproved(
    common: &Common,
    host: &Host,
    args: &Inspect,
) -> Option<Result<Exit, Failure>> {
    let has_it = |plugin: &Plugin| definition_of(plugin, &args.subject).is_some();
    let plugin = host.unapproved().into_iter().find(has_it)?;
    Some(show_unapproved(common, &plugin, args))
}

/// Shows a shipped plugin that a grant would load, by its name or that of a tool. Returns `None` if
/// there is none.
pub(super) fn shipped(
    common: &Common,
    settings: &Settings,
    host: &Host,
    args: &Inspect,
) -> Option<Result<Exit, Failure>> {
    if settings.builtin.value != Shipped::Included {
        return None;
    }
    let missing = grants::missing(host, &args.subject)?;
    output::note(&missing.advice);
    Some(look_at_shipped(common, settings, missing.plugin, args))
}

fn look_at_shipped(
    common: &Common,
    settings: &Settings,
    name: &str,
    args: &Inspect,
) -> Result<Exit, Failure> {
    let builder = setup::alone(common, settings)?.shipped(Shipped::Included);
    let host = builder.powers(Arc::new(Unconnected)).build()?;
    let plugins = host.plugins();
    match plugins.iter().find(|plugin| plugin.name() == name) {
        Some(plugin) => show(common, &host, plugin, None, args),
        None => Err(Failure::new(Exit::Internal, "the shipped plugin was not loaded")),
    }
}

fn show_unapproved(common: &Common, plugin: &Plugin, args: &Inspect) -> Result<Exit, Failure> {
    let tool = definition_of(plugin, &args.subject);
    if let PluginApproval::Missing(why) = plugin.approval() {
        output::note(&format!("`{}` is a tool of {}: {why}", args.subject, plugin.file()));
    }
    if args.json {
        let digest = plugin.digest().to_string();
        let words = tool.map(ToolWords::from);
        let wishes = wishes::json(common, plugin, None);
        let shown = json!({"tool": words, "plugin": plugin.name(), "digest": digest, "approved": false, "imports": imports(plugin), "wishes": wishes});
        output::json(&shown)?;
    } else {
        let room = columns(std::io::stdout());
        let tool = tool.map(|tool| tool_text(tool, power(plugin), room)).unwrap_or_default();
        let wishes = wishes::text(common, plugin, None, room);
        output::text(&(tool + &plugin_text(plugin, room) + &wishes))?;
    }
    Ok(Exit::Ok)
}

/// Shows a plugin, and the commands that grant its wishes: for the file at `path` if it has one.
fn show(
    common: &Common,
    host: &Host,
    plugin: &Plugin,
    path: Option<&str>,
    args: &Inspect,
) -> Result<Exit, Failure> {
    if args.json {
        let mut shown = plugin_json(host, plugin);
        shown["wishes"] = wishes::json(common, plugin, path);
        output::json(&shown)?;
    } else {
        let room = columns(std::io::stdout());
        let wishes = wishes::text(common, plugin, path, room);
        output::text(&(plugin_with_tools(plugin, room) + &wishes))?;
    }
    Ok(Exit::Ok)
}
