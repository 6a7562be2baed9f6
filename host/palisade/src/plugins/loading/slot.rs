//! One position in the plugin order: a plugin, a rejection, or both if a broken file has replaced a
//! good one.

use crate::execution::account::DescriptionPart;
use crate::plugins::candidate::{Candidate, FileDigest};
use crate::plugins::changes::PluginChange;
use crate::plugins::plugin::Plugin;
use crate::plugins::rejected::{RegistrationError, Rejected};
use crate::tool::Digest;
use std::sync::Arc;

/// One position in the plugin order.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) candidate: Candidate,
    /// The latest state of the file's bytes.
    pub(super) latest: Latest,
    /// The registered plugin: that of an earlier version of the file if the latest is rejected.
    pub(super) standing: Option<Plugin>,
    /// The reason why the latest version is not registered.
    pub(super) rejected: Option<Rejected>,
}

/// The bytes of a file at the last scan, and the resulting plugin.
#[derive(Clone)]
pub(super) struct Latest {
    /// `None` if the time of reading is unknown or reading failed.
    pub(super) file_digest: Option<FileDigest>,
    pub(super) digest: Option<Digest>,
    pub(super) plugin: Result<Plugin, String>,
}

impl Latest {
    /// Creates the state of a newly prepared plugin.
    pub(super) fn from_plugin(plugin: Plugin) -> Self {
        Self { file_digest: None, digest: Some(plugin.digest()), plugin: Ok(plugin) }
    }
}

impl Slot {
    /// Creates the slot of a new candidate.
    pub(super) fn new(
        candidate: &Candidate,
        latest: Latest,
        registered: Result<(), RegistrationError>,
    ) -> Self {
        let rejected = registered.err().map(|RegistrationError { reason, cause }| Rejected {
            file: candidate.file(),
            reason,
            cause,
        });
        let standing = latest.plugin.as_ref().ok().filter(|_| rejected.is_none()).cloned();
        Self { candidate: candidate.clone(), latest, standing, rejected }
    }

    /// Returns the memory of the file's descriptions in this part, in bytes.
    pub(super) fn description_memory(&self, part: DescriptionPart) -> u64 {
        let latest = self.latest.plugin.as_ref().ok().map(|plugin| &plugin.prepared);
        let standing = self.standing.as_ref().map(|plugin| &plugin.prepared);
        let other = standing.filter(|it| latest.is_none_or(|latest| !Arc::ptr_eq(it, latest)));
        latest.into_iter().chain(other).map(|it| it.description.memory_in(part)).sum()
    }

    /// Returns the events of a new slot.
    pub(super) fn plugin_changes(&self) -> impl Iterator<Item = PluginChange<'_>> {
        let loaded = self.standing.iter().map(PluginChange::Loaded);
        loaded.chain(self.rejected.iter().map(PluginChange::Rejected))
    }
}
