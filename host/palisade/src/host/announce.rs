//! Events about the loading of plugins.

use crate::events::{Event, Events, PluginFacts};
use crate::plugins::{Plugin, PluginChange, Rejected};

/// Sends the event of a plugin change.
pub(super) fn announce(events: &Events, change: PluginChange<'_>) {
    events.emit(|| match change {
        PluginChange::Loaded(plugin) => Event::PluginLoaded(facts(plugin)),
        PluginChange::Changed(plugin) => Event::PluginChanged(facts(plugin)),
        PluginChange::Removed(plugin) => Event::PluginRemoved(facts(plugin)),
        PluginChange::Rejected(Rejected { file, reason, .. }) => {
            Event::PluginRejected { file: file.clone(), reason: reason.clone() }
        }
    });
}

fn facts(plugin: &Plugin) -> PluginFacts {
    let tools = plugin.tools().iter().map(|tool| tool.definition().name().to_string()).collect();
    PluginFacts {
        plugin: plugin.name().into(),
        digest: plugin.digest(),
        tools,
        grants: plugin.grants(),
    }
}
