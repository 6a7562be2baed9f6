//! Events about the loading of plugins.

use crate::events::{Event, Events, PluginFacts};
use crate::plugins::{News, Plugin, Rejected};

/// Sends the event of a plugin change.
pub(super) fn announce(events: &Events, news: News<'_>) {
    events.emit(|| match news {
        News::Loaded(plugin) => Event::PluginLoaded(facts(plugin)),
        News::Changed(plugin) => Event::PluginChanged(facts(plugin)),
        News::Removed(plugin) => Event::PluginRemoved(facts(plugin)),
        News::Rejected(Rejected { file, reason, .. }) => {
            Event::PluginRejected { file: file.clone(), reason: reason.clone() }
        }
    });
}

fn facts(plugin: &Plugin) -> PluginFacts {
    let tools =
        plugin.definitions().iter().map(|definition| definition.name().to_string()).collect();
    PluginFacts { plugin: plugin.name().into(), digest: plugin.digest(), tools }
}
