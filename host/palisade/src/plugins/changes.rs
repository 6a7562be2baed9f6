//! The changes between two scans.

use super::plugin::Plugin;
use super::rejected::Rejected;

/// The changes since the previous scan.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Rescan {
    /// The new plugins.
    pub loaded: Vec<Plugin>,
    /// The plugins with new code.
    pub changed: Vec<Plugin>,
    /// The removed plugins. Their running calls finish normally.
    pub removed: Vec<Plugin>,
    /// The files that are newly rejected, or for a new reason. If the file's previous plugin stays,
    /// the reason says so.
    pub rejected: Vec<Rejected>,
}

impl Rescan {
    /// Returns true if nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loaded.is_empty()
            && self.changed.is_empty()
            && self.removed.is_empty()
            && self.rejected.is_empty()
    }

    pub(crate) fn plugin_changes(&self) -> impl Iterator<Item = PluginChange<'_>> {
        let there = self
            .loaded
            .iter()
            .map(PluginChange::Loaded)
            .chain(self.changed.iter().map(PluginChange::Changed));
        there
            .chain(self.removed.iter().map(PluginChange::Removed))
            .chain(self.rejected.iter().map(PluginChange::Rejected))
    }
}

/// A change of a plugin.
#[derive(Clone, Copy)]
pub(crate) enum PluginChange<'a> {
    Loaded(&'a Plugin),
    Changed(&'a Plugin),
    Removed(&'a Plugin),
    Rejected(&'a Rejected),
}

/// The reason why a watch scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanCause {
    /// A file has changed, or the watch begins.
    Change,
    /// A file was compiled behind the last scan, or a scan was left out.
    Due,
}
