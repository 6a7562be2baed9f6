//! The approvals and the grants of a run, which are read again when one of their files changes.

use super::{Entry, beside, entries, merged, read_silently, variable};
use crate::cli::args::Common;
use crate::cli::{output, setup};
use palisade::plugins::{Approvals, NotApproved, Plugin, PluginApproval, PluginBytes};
use palisade::tool::Digest;
use palisade_net::Grants;
use palisade_trust::LockedPlugins;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The approvals of a run, with its grants: a host that watches its approvals watches both.
pub(in crate::cli) struct LiveRights {
    pub(in crate::cli) approvals: LockedPlugins,
    pub(in crate::cli) grants: LiveGrants,
}

/// The grants of a run.
pub(in crate::cli) struct LiveGrants {
    common: Common,
    grants: Arc<Grants>,
    /// The entries that hold.
    entries: Mutex<Vec<Entry>>,
}

impl LiveGrants {
    pub(super) fn new(common: &Common, grants: Arc<Grants>, entries: Vec<Entry>) -> Self {
        Self { common: common.clone(), grants, entries: Mutex::new(entries) }
    }

    /// Reads the grants again. If they cannot be read, no plugin has any: what a person has taken
    /// back must not go on.
    fn read_again(&self) {
        // Held from here on, so that an older state never takes the place of a newer one.
        let mut held = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let read = read_silently(&self.common).and_then(|file| entries(&self.common, &file));
        let entries = read.unwrap_or_else(|failure| {
            output::note(&format!("no plugin has a grant now: {failure}"));
            Vec::new()
        });
        if *held == entries {
            return;
        }
        let merged = merged(&entries).into_iter();
        self.grants.replace(merged.map(|(plugin, entry)| (plugin, entry.resolve(&variable))));
        *held = entries;
        output::note("the grants of plugins have changed, and hold for the next requests");
    }
}

impl Approvals for LiveRights {
    fn scan_begins(&self) {
        self.approvals.scan_begins();
        self.grants.read_again();
    }

    fn check_bytes(&self, bytes: &PluginBytes<'_>) -> Result<(), NotApproved> {
        self.approvals.check_bytes(bytes)
    }

    fn refusal_of_bytes(&self, bytes: &PluginBytes<'_>) -> Option<NotApproved> {
        self.approvals.refusal_of_bytes(bytes)
    }

    fn of(&self, plugin: &Plugin) -> PluginApproval {
        self.approvals.of(plugin)
    }

    fn change_of(&self, name: &str, path: &Path, digest: Option<Digest>) -> Option<String> {
        self.approvals.change_of(name, path, digest)
    }

    fn files(&self) -> Vec<PathBuf> {
        let grants = beside(&setup::user_file(&self.grants.common));
        self.approvals.files().into_iter().chain(grants).collect()
    }
}
