//! Reports settings of single plugins without effect: a misspelled name would leave the plugin
//! without them in silence.

use super::output;
use crate::config::Settings;
use palisade::Host;
use palisade::plugins::Plugin;
use palisade::tool::nearest_names;
use palisade::tool::text::elided;

/// Maximum length of a shown list of names, in characters.
const MAX_NAMES: usize = 512;

/// Reports on standard error the tables of plugins that were not found, and the new names of tools
/// that their plugin does not have.
pub(super) fn show(settings: &Settings, host: &Host) {
    let plugins: Vec<Plugin> = host.plugins().into_iter().chain(host.unapproved()).collect();
    for (name, options) in &settings.plugins {
        if !host.has_found(name) {
            let known = plugins.iter().map(Plugin::name);
            output::note(&format!(
                "`plugins.{name}` holds for no plugin that is found{}",
                hint(name, known)
            ));
            continue;
        }
        // A file that is compiling or broken has told nothing of its tools.
        for plugin in plugins.iter().filter(|plugin| plugin.name() == name) {
            let own: Vec<&str> =
                plugin.definitions().iter().map(|tool| tool.own_name().as_str()).collect();
            for (tool, new) in &options.rename {
                if !own.contains(&tool.as_str()) {
                    output::note(&format!(
                        "`plugins.{name}.rename.{tool}` ({}) holds for no tool of {}, which has {}{}",
                        new.origin,
                        plugin.file(),
                        elided(&own.join(", "), MAX_NAMES),
                        hint(tool, own.iter().copied()),
                    ));
                }
            }
        }
    }
}

fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let nearest = nearest_names(name, known.into_iter()).into_iter().next();
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
