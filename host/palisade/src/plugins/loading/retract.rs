//! Takes plugins out whose approval is gone. It needs no turn: a revocation is obeyed while a scan
//! compiles other files.

use super::slot::Slot;
use super::slot_changes::note_changes;
use super::work::{Work, lock};
use crate::plugins::changes::Rescan;

impl Work {
    /// Removes the tools of every file that is not approved any more. A later scan brings back
    /// those that are approved again.
    pub(super) fn retract(&self) -> Rescan {
        self.task.approvals.scan_begins();
        let mut rescan = Rescan::default();
        let _settling = lock(&self.settling);
        // A copy, since the approvals may ask the host for its plugins.
        let known = lock(&self.decided).clone();
        for (index, slot) in known.into_iter().filter(|(_, slot)| !slot.candidate.is_shipped()) {
            let Some(after) = self.retracted(&slot) else { continue };
            note_changes(&mut rescan, Some(&slot), Some(&after));
            lock(&self.decided).insert(index, after);
        }
        rescan.plugin_changes().for_each(|change| (self.task.on_change)(change));
        rescan
    }

    /// Removes the tools of a slot if its plugin is not approved, and returns its new state.
    fn retracted(&self, slot: &Slot) -> Option<Slot> {
        let standing = slot.standing.as_ref()?;
        let now = self.with_source(&slot.candidate, standing.clone());
        let refused = now.check_offered().err()?;
        for tool in standing.tools() {
            // A program may have removed it before.
            let _ = self.task.registry.unregister(tool.definition().name().as_str());
        }
        let latest = self.renewed(&slot.candidate, slot.latest.clone());
        Some(Slot::new(&slot.candidate, latest, Err(refused)))
    }
}
