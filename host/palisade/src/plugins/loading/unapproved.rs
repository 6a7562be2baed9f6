//! The plugins that are found, described, and not approved.

use super::slot::Slot;
use super::work::{Work, lock};
use crate::plugins::approval::{NotApproved, PluginApproval};
use crate::plugins::plugin::Plugin;
use crate::tool::Digest;
use std::sync::Arc;

/// The plugin without approval that has a tool.
pub(crate) struct Unapproved {
    pub(crate) plugin: Arc<str>,
    pub(crate) why: Arc<NotApproved>,
}

impl Slot {
    /// Returns the plugin of the latest bytes, if only its approval is missing.
    fn unapproved(&self) -> Option<(&Plugin, &Arc<NotApproved>)> {
        let plugin = self.latest.plugin.as_ref().ok()?;
        match &plugin.approval {
            PluginApproval::Missing(why) => Some((plugin, why)),
            PluginApproval::Approved | PluginApproval::ThisRun => None,
        }
    }
}

impl Work {
    /// Returns the plugins that are not approved, in the order of discovery.
    pub(super) fn unapproved(&self) -> Vec<Plugin> {
        let decided = lock(&self.decided);
        let plugins = decided.values().filter_map(Slot::unapproved);
        plugins.map(|(plugin, _)| plugin.clone()).collect()
    }

    /// Asks again for the approval of the plugin with these bytes, which a person may have revoked
    /// since it was loaded. Returns the refusal if it is approved no more. It reads files.
    pub(super) fn revoked_since(&self, digest: Digest) -> Option<Unapproved> {
        let is_it = |plugin: &&Plugin| plugin.digest() == digest;
        let plugin = {
            let decided = lock(&self.decided);
            let known = |slot: &Slot| {
                let latest = slot.latest.plugin.as_ref().ok().filter(is_it);
                latest.or_else(|| slot.standing.as_ref().filter(is_it)).cloned()
            };
            decided.values().find_map(known)?
        };
        self.task.approvals.scan_begins();
        match self.task.approvals.of(&plugin) {
            PluginApproval::Missing(why) => Some(Unapproved { plugin: plugin.name.clone(), why }),
            PluginApproval::Approved | PluginApproval::ThisRun => None,
        }
    }

    /// Returns the first plugin without approval that has a tool of this name.
    pub(super) fn unapproved_with(&self, tool: &str) -> Option<Unapproved> {
        let decided = lock(&self.decided);
        let has = |plugin: &Plugin| {
            plugin.tools().iter().any(|known| known.definition().name().as_str() == tool)
        };
        let mut plugins = decided.values().filter_map(Slot::unapproved);
        let (plugin, why) = plugins.find(|(plugin, _)| has(plugin))?;
        Some(Unapproved { plugin: plugin.name.clone(), why: why.clone() })
    }
}
