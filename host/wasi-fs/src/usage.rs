//! The usage of a file system by its guest: counters and the change log.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::budget::ResourceBudget;
use crate::change_log::{ChangeLog, Origin};
use crate::errors::Refusal;
use crate::new_files::NewFiles;
use crate::protected_paths::{HardLinks, ProtectedPaths};
use crate::quotas::{Counter, Counters, Exhausted, Quotas, SharedQuotas};

/// The usage of one file system, shared with its open streams.
#[derive(Debug)]
pub(super) struct Usage {
    own: Counters,
    shared: Option<Arc<SharedQuotas>>,
    holes: AtomicU64,
    refusal: OnceLock<Refusal>,
    exhausted: OnceLock<Exhausted>,
    full: AtomicBool,
    changes: Mutex<ChangeLog>,
    new_files: Mutex<NewFiles>,
    depth: u64,
    protected: Option<Arc<ProtectedPaths>>,
    budget: Option<Arc<dyn ResourceBudget>>,
}

impl Usage {
    pub(super) fn new(
        quotas: Quotas,
        protected: Option<Arc<ProtectedPaths>>,
        budget: Option<Arc<dyn ResourceBudget>>,
    ) -> Self {
        Self {
            own: Counters::new(quotas),
            shared: None,
            holes: AtomicU64::new(0),
            refusal: OnceLock::new(),
            exhausted: OnceLock::new(),
            full: AtomicBool::new(false),
            changes: Mutex::new(ChangeLog::default()),
            new_files: Mutex::default(),
            depth: quotas.depth,
            protected,
            budget,
        }
    }

    /// Counts in quotas that other file systems use up as well.
    pub(super) fn within(mut self, shared: Option<Arc<SharedQuotas>>) -> Self {
        self.shared = shared;
        self
    }

    /// Returns the budget of the host. A file system without a mount has none.
    pub(super) fn budget(&self) -> Option<&Arc<dyn ResourceBudget>> {
        self.budget.as_ref()
    }

    /// Returns the number of bytes that may still be read.
    pub(super) fn readable(&self) -> u64 {
        let own = self.own.read.left();
        self.shared.as_ref().map_or(own, |shared| own.min(shared.counters().read.left()))
    }

    /// Charges bytes that were read.
    pub(super) fn charge_read(&self, bytes: u64) -> Result<(), Exhausted> {
        self.charge(|all| &all.read, bytes).map_err(Exhausted::ReadBytes)
    }

    /// Charges bytes that are about to be written, and the length of the hole before them.
    pub(super) fn charge_write(&self, bytes: u64, hole: u64) -> Result<(), Exhausted> {
        let all = bytes.saturating_add(hole);
        self.charge(|all| &all.write, all).map_err(Exhausted::WriteBytes)?;
        self.holes.fetch_add(hole, Ordering::Relaxed);
        Ok(())
    }

    /// Refunds charged bytes that were not written.
    pub(super) fn refund_write(&self, bytes: u64, hole: u64) {
        self.refund(|all| &all.write, bytes.saturating_add(hole));
        self.holes.fetch_sub(hole, Ordering::Relaxed);
    }

    /// Charges an entry that is about to be created.
    pub(super) fn charge_entry(&self) -> Result<(), Exhausted> {
        self.charge(|all| &all.entries, 1).map_err(Exhausted::NewEntries)
    }

    /// Refunds a charged entry that was not created.
    pub(super) fn refund_entry(&self) {
        self.refund(|all| &all.entries, 1);
    }

    /// Charges one listed directory entry.
    pub(super) fn charge_listed(&self) -> Result<(), Exhausted> {
        self.charge(|all| &all.listed, 1).map_err(Exhausted::ListedEntries)
    }

    /// Charges a counter of this file system and the shared one. If one of them is exhausted,
    /// nothing is charged, and the error is its limit.
    fn charge(&self, which: fn(&Counters) -> &Counter, amount: u64) -> Result<(), u64> {
        let own = which(&self.own);
        own.take(amount)?;
        let Some(shared) = &self.shared else { return Ok(()) };
        which(shared.counters()).take(amount).inspect_err(|_| own.give_back(amount))
    }

    fn refund(&self, which: fn(&Counters) -> &Counter, amount: u64) {
        which(&self.own).give_back(amount);
        if let Some(shared) = &self.shared {
            which(shared.counters()).give_back(amount);
        }
    }

    /// Records a path whose contents or metadata were changed.
    pub(super) fn note_changed(&self, path: &str) {
        self.record(|log| log.note(path, Origin::Before));
    }

    /// Records a created path.
    pub(super) fn note_created(&self, path: &str) {
        self.record(|log| log.note(path, Origin::Call));
    }

    /// Records a removed path.
    pub(super) fn note_gone(&self, path: &str) {
        self.record(|log| log.note_gone(path));
    }

    /// Records the move of an entry. `replaces` tells whether an entry existed at the new path.
    pub(super) fn note_moved(&self, old: &str, new: &str, replaces: bool) {
        let origin = if replaces { Origin::Before } else { Origin::Call };
        self.record(|log| log.note_moved(old, new, origin));
    }

    pub(super) fn modified(&self) -> Vec<String> {
        self.change_log().paths()
    }

    /// Returns the files that the call has created lately.
    pub(super) fn new_files(&self) -> MutexGuard<'_, NewFiles> {
        self.new_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entries that the call created, that still exist, and whose name is `meant`.
    pub(super) fn created(&self, meant: impl Fn(&str) -> bool) -> Vec<String> {
        self.change_log().created(meant)
    }

    pub(super) fn modified_unlisted(&self) -> u64 {
        self.change_log().unlisted()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.own.read.used()
    }

    pub(super) fn bytes_written(&self) -> u64 {
        self.own.write.used().saturating_sub(self.holes.load(Ordering::Relaxed))
    }

    pub(super) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.get()
    }

    /// Returns the protected paths of the mount. Without a mount nothing may be changed.
    pub(super) fn protected(&self) -> Result<&ProtectedPaths, Refusal> {
        self.protected.as_deref().ok_or(Refusal::ReadOnly)
    }

    /// Returns whether the mount contains trees that must not even be read.
    pub(super) fn hides(&self) -> bool {
        self.protected.as_ref().is_some_and(|protected| protected.hide_anything())
    }

    /// Returns the rules of the mount if they judge a path by the place of its directory.
    pub(super) fn filter(&self) -> Option<&ProtectedPaths> {
        self.protected.as_deref().filter(|protected| protected.judge_places())
    }

    /// Returns whether path rules may deny a part of the mount.
    pub(super) fn denies_paths(&self) -> bool {
        self.protected.as_ref().is_some_and(|protected| protected.filter_anything())
    }

    /// Refuses to read a file that may have another name, which path rules deny.
    pub(super) fn check_aliases(&self, names: u64) -> Result<(), Refusal> {
        let checked = if self.denies_paths() { self.check_links(names) } else { Ok(()) };
        checked.map_err(|_| Refusal::Aliased)
    }

    /// Refuses to change a file in place if it has several hard links.
    pub(super) fn check_links(&self, names: u64) -> Result<(), Refusal> {
        if names <= 1 {
            return Ok(());
        }
        match self.protected()?.hard_links() {
            HardLinks::Refuse => Err(Refusal::HardLinked),
            HardLinks::Allow => Ok(()),
        }
    }

    /// Refuses to create hard links, unless the host allows them.
    pub(super) fn check_linking(&self) -> Result<(), Refusal> {
        match self.protected()?.hard_links() {
            HardLinks::Refuse => Err(Refusal::HardLink),
            HardLinks::Allow => Ok(()),
        }
    }

    /// Refuses an entry that is deeper than the quota. An entry of the mount has depth 1.
    pub(super) fn check_depth(&self, depth: u64) -> Result<(), Exhausted> {
        if depth <= self.depth { Ok(()) } else { Err(Exhausted::Depth(self.depth)) }
    }

    pub(super) fn exhausted(&self) -> Option<Exhausted> {
        self.exhausted.get().copied()
    }

    /// Records the first refusal. Later ones come from the same guest, mostly for the same reason.
    pub(super) fn note_refusal(&self, refusal: Refusal) {
        tracing::debug!(%refusal, "file operation refused");
        let _ = self.refusal.set(refusal);
    }

    pub(super) fn note_exhausted(&self, which: Exhausted) {
        let _ = self.exhausted.set(which);
    }

    /// Returns whether the mounted file system had no room for a write.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub(super) fn note_full(&self) {
        self.full.store(true, Ordering::Relaxed);
    }

    /// Changes the change log, and counts its memory in the budget.
    fn record(&self, change: impl FnOnce(&mut ChangeLog)) {
        let mut log = self.change_log();
        change(&mut log);
        if let Some(budget) = &self.budget {
            log.count_memory(&**budget);
        }
    }

    fn change_log(&self) -> MutexGuard<'_, ChangeLog> {
        // Ignore lock poisoning: recording a path cannot leave the log half-changed.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            let log = self.changes.get_mut().unwrap_or_else(PoisonError::into_inner);
            log.release_memory(&**budget);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::NoDescriptor;

    /// A budget that counts memory.
    #[derive(Debug, Default)]
    struct Memory(AtomicU64);

    impl ResourceBudget for Memory {
        fn take_descriptor(&self) -> Result<(), NoDescriptor> {
            Ok(())
        }

        fn return_descriptor(&self) {}

        fn hold_memory(&self, bytes: u64) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }

        fn release_memory(&self, bytes: u64) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn shared_quotas_bound_all_file_systems_together() {
        let quotas = Quotas { write_bytes: 10, new_entries: 2, ..Quotas::default() };
        let shared = Arc::new(SharedQuotas::new(quotas));
        let call = || Usage::new(quotas, None, None).within(Some(shared.clone()));
        let (one, other) = (call(), call());
        assert_eq!(one.charge_write(6, 0), Ok(()));
        assert_eq!(other.charge_write(5, 0), Err(Exhausted::WriteBytes(10)));
        one.refund_write(3, 0);
        assert_eq!(other.charge_write(5, 2), Ok(()));
        assert_eq!((one.charge_entry(), other.charge_entry()), (Ok(()), Ok(())));
        assert_eq!(one.charge_entry(), Err(Exhausted::NewEntries(2)));
        drop((one, other));
        assert_eq!(call().charge_write(1, 0), Err(Exhausted::WriteBytes(10)), "used up for good");
        assert_eq!(Usage::new(quotas, None, None).charge_write(10, 0), Ok(()), "its own quotas");
    }

    #[test]
    fn the_memory_of_the_change_log_is_counted_as_it_changes_and_until_it_is_dropped() {
        let memory = Arc::new(Memory::default());
        let counted = || memory.0.load(Ordering::Relaxed);
        let call = || Usage::new(Quotas::default(), None, Some(memory.clone()));
        let (one, other) = (call(), call());
        assert_eq!(counted(), 0);
        one.note_created("a");
        let name = counted();
        assert!(name > 0);
        other.note_changed("b");
        assert_eq!(counted(), 2 * name);
        one.note_moved("a", "c", false);
        other.note_gone("d");
        let most = counted();
        assert!(most > 3 * name);
        one.note_gone("c");
        assert!(counted() < most);
        drop(one);
        assert_eq!(counted(), 2 * name);
        drop(other);
        assert_eq!(counted(), 0);
    }
}
