//! `palisade adapt`: shows the tools that the functions of a component of another world become, and
//! what the other subcommands share about such components.

use super::args::{Adapt, Common};
use super::exit::{Exit, Failure};
use super::output;
use super::wrap::columns;
use super::{inspect, setup};
use crate::config::{Adapted, Origin, Value};
use palisade::HostBuilder;
use palisade_author::wit;
use palisade_trust::shell_word;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(super) fn run(common: &Common, args: &Adapt) -> Result<Exit, Failure> {
    let settings = setup::settings(common)?;
    let adapted = Adapted { wit: args.wit.clone(), ..Adapted::new(args.file.clone(), args.class) };
    let mut adapted = [Value { value: adapted, origin: Origin::Flag("--wit") }];
    read_docs(&mut adapted)?;
    if !args.file.exists() {
        let file = args.file.display();
        return Err(Failure::new(Exit::NotFound, format!("there is no file `{file}`")));
    }
    let builder = setup::alone(common, &settings)?;
    let host = add_to(builder, &adapted).build()?;
    if let Some(rejected) = host.rejected().first() {
        let text = format!("`{}` cannot be adapted: {}", rejected.file, rejected.reason);
        return Err(Failure::new(Exit::Invalid, text));
    }
    let plugins = host.plugins();
    let Some(plugin) = plugins.first() else {
        return Err(Failure::new(Exit::Internal, "the component was neither loaded nor rejected"));
    };
    let table = table(args);
    if args.json {
        let mut shown = inspect::plugin_json(&host, plugin);
        shown["class"] = json!(args.class.as_str());
        shown["configuration"] = json!(table);
        output::json(&shown)?;
    } else {
        let shown = inspect::plugin_with_tools(plugin, columns(std::io::stdout()));
        let advice = format!(
            "\nTo serve these tools, add this to your palisade.toml, or give {}:\n\n",
            option(args)
        );
        output::text(&(shown + &output::prose(&advice) + &table))?;
    }
    Ok(Exit::Ok)
}

/// Returns the option that serves the tools in one run.
fn option(args: &Adapt) -> String {
    let word = format!("{}={}", args.file.display(), args.class);
    format!("--adapt {}", shell_word(&word))
}

/// Returns the entry of the configuration that serves the tools.
fn table(args: &Adapt) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = |path: &Path| {
        toml::Value::String(absolute(path).to_string_lossy().into_owned()).to_string()
    };
    let mut table = format!("[[adapt]]\nfile = {}\nclass = \"{}\"\n", text(&args.file), args.class);
    if let Some(wit) = &args.wit {
        table.push_str(&format!("wit = {}\n", text(wit)));
    }
    table
}

/// Reads the descriptions of the components that have a directory of WIT.
pub(super) fn read_docs(adapted: &mut [Value<Adapted>]) -> Result<(), Failure> {
    for Value { value, origin } in adapted {
        let Some(directory) = &value.wit else { continue };
        let failed = |error| Failure::usage(format_args!("{error}; {origin} names it"));
        value.docs = wit::docs(directory).map_err(failed)?;
    }
    Ok(())
}

/// Adds components to a host, and protects their WIT, from which the model gets its descriptions.
pub(super) fn add_to(host: HostBuilder, adapted: &[Value<Adapted>]) -> HostBuilder {
    adapted.iter().fold(host, |host, Value { value, .. }| {
        let host = host.adapt(&value.file, value.adaptation());
        value.wit.iter().fold(host, HostBuilder::protect)
    })
}

/// Returns the paths of components and their WIT, for the records of other runs.
pub(super) fn paths(adapted: &[Value<Adapted>]) -> impl Iterator<Item = &PathBuf> {
    adapted.iter().flat_map(|adapted| [&adapted.value.file].into_iter().chain(&adapted.value.wit))
}
