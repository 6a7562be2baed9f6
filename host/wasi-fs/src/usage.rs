//! The usage of a file system by its guest: counters, quotas and the change log.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::budget::ResourceBudget;
use crate::change_log::{ChangeLog, Origin};
use crate::errors::Refusal;
use crate::protected_paths::{HardLinks, ProtectedPaths};

/// The quotas of one [`Filesystem`](crate::Filesystem).
///
/// ```
/// let mut quotas = palisade_wasi_fs::Quotas::default();
/// quotas.write_bytes = 1 << 20;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quotas {
    /// Total bytes read from files.
    pub read_bytes: u64,
    /// Total bytes written to files. Holes created by a write or a resize count with their length.
    pub write_bytes: u64,
    /// Total files, directories and hard links created.
    pub new_entries: u64,
    /// Total directory entries listed.
    pub listed_entries: u64,
    /// Maximum number of components in the path of a new entry, relative to the mount.
    pub depth: u64,
}

impl Quotas {
    /// 256 MiB: a search through a large source tree reads some 100 MiB, and reading this much
    /// takes well under a second.
    pub const READ_BYTES: u64 = 256 << 20;
    /// 64 MiB: more than any tool writes that edits or generates text, and little enough to be
    /// cleaned up by hand.
    pub const WRITE_BYTES: u64 = 64 << 20;
    /// 10,000: a generated project stays below, and this number of empty files does not exhaust the
    /// inodes of a file system.
    pub const NEW_ENTRIES: u64 = 10_000;
    /// 100,000: the Linux kernel's tree has about 90,000 files; listing this many takes about a
    /// quarter of a second.
    pub const LISTED_ENTRIES: u64 = 100_000;
    /// 128: nested packages reach some 50, and programs that walk a tree without a bound of their
    /// own survive this depth.
    pub const DEPTH: u64 = 128;
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            read_bytes: Self::READ_BYTES,
            write_bytes: Self::WRITE_BYTES,
            new_entries: Self::NEW_ENTRIES,
            listed_entries: Self::LISTED_ENTRIES,
            depth: Self::DEPTH,
        }
    }
}

/// An exhausted quota, with its limit. The guest sees a quota error.
///
/// The enum is exhaustive, so that a host maps each quota to an error of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    /// [`Quotas::read_bytes`]
    ReadBytes(u64),
    /// [`Quotas::write_bytes`]
    WriteBytes(u64),
    /// [`Quotas::new_entries`]
    NewEntries(u64),
    /// [`Quotas::listed_entries`]
    ListedEntries(u64),
    /// [`Quotas::depth`]
    Depth(u64),
    /// The file descriptors of the [`ResourceBudget`].
    OpenFiles(u64),
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadBytes(limit) => write!(f, "{limit} bytes read from files"),
            Self::WriteBytes(limit) => write!(f, "{limit} bytes written to files"),
            Self::NewEntries(limit) => write!(f, "{limit} files and directories created"),
            Self::ListedEntries(limit) => write!(f, "{limit} directory entries listed"),
            Self::Depth(limit) => write!(f, "{limit} directories inside each other"),
            Self::OpenFiles(limit) => write!(f, "{limit} open files and directories"),
        }
    }
}

/// The usage of one file system, shared with its open streams.
#[derive(Debug)]
pub(super) struct Usage {
    read: Counter,
    write: Counter,
    holes: AtomicU64,
    entries: Counter,
    listed: Counter,
    refusal: OnceLock<Refusal>,
    exhausted: OnceLock<Exhausted>,
    changes: Mutex<ChangeLog>,
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
            read: Counter::new(quotas.read_bytes),
            write: Counter::new(quotas.write_bytes),
            holes: AtomicU64::new(0),
            entries: Counter::new(quotas.new_entries),
            listed: Counter::new(quotas.listed_entries),
            refusal: OnceLock::new(),
            exhausted: OnceLock::new(),
            changes: Mutex::new(ChangeLog::default()),
            depth: quotas.depth,
            protected,
            budget,
        }
    }

    /// Returns the budget of the host. A file system without a mount has none.
    pub(super) fn budget(&self) -> Option<&Arc<dyn ResourceBudget>> {
        self.budget.as_ref()
    }

    /// Returns the number of bytes that may still be read.
    pub(super) fn readable(&self) -> u64 {
        self.read.left()
    }

    /// Charges bytes that were read.
    pub(super) fn charge_read(&self, bytes: u64) -> Result<(), Exhausted> {
        self.read.take(bytes).ok_or(Exhausted::ReadBytes(self.read.limit))
    }

    /// Charges bytes that are about to be written, and the length of the hole before them.
    pub(super) fn charge_write(&self, bytes: u64, hole: u64) -> Result<(), Exhausted> {
        let all = bytes.saturating_add(hole);
        self.write.take(all).ok_or(Exhausted::WriteBytes(self.write.limit))?;
        self.holes.fetch_add(hole, Ordering::Relaxed);
        Ok(())
    }

    /// Refunds charged bytes that were not written.
    pub(super) fn refund_write(&self, bytes: u64, hole: u64) {
        self.write.give_back(bytes.saturating_add(hole));
        self.holes.fetch_sub(hole, Ordering::Relaxed);
    }

    /// Charges an entry that is about to be created.
    pub(super) fn charge_entry(&self) -> Result<(), Exhausted> {
        self.entries.take(1).ok_or(Exhausted::NewEntries(self.entries.limit))
    }

    /// Refunds a charged entry that was not created.
    pub(super) fn refund_entry(&self) {
        self.entries.give_back(1);
    }

    /// Charges one listed directory entry.
    pub(super) fn charge_listed(&self) -> Result<(), Exhausted> {
        self.listed.take(1).ok_or(Exhausted::ListedEntries(self.listed.limit))
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

    /// Returns the entries that the call created, that still exist, and whose name is `meant`.
    pub(super) fn created(&self, meant: impl Fn(&str) -> bool) -> Vec<String> {
        self.change_log().created(meant)
    }

    pub(super) fn modified_unlisted(&self) -> u64 {
        self.change_log().unlisted()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.read.used()
    }

    pub(super) fn bytes_written(&self) -> u64 {
        self.write.used().saturating_sub(self.holes.load(Ordering::Relaxed))
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

    /// Returns the rules of the mount if they deny paths.
    pub(super) fn filter(&self) -> Option<&ProtectedPaths> {
        self.protected.as_deref().filter(|protected| protected.filter_anything())
    }

    /// Refuses to read a file that may have another name, which path rules deny.
    pub(super) fn check_aliases(&self, names: u64) -> Result<(), Refusal> {
        let checked = self.filter().map_or(Ok(()), |_| self.check_links(names));
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

/// A bounded counter. Relaxed ordering suffices, since it publishes no other data.
#[derive(Debug)]
struct Counter {
    used: AtomicU64,
    limit: u64,
}

impl Counter {
    fn new(limit: u64) -> Self {
        Self { used: AtomicU64::new(0), limit }
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// Adds to the counter. Returns none and adds nothing if that would exceed the limit.
    fn take(&self, amount: u64) -> Option<()> {
        let add = |used: u64| used.checked_add(amount).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(|_| ())
    }

    fn give_back(&self, amount: u64) {
        let reduce = |used: u64| Some(used.saturating_sub(amount));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reduce);
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

    #[test]
    fn quota_message_has_number_and_unit() {
        for (exhausted, words) in [
            (Exhausted::ReadBytes(1), "1 bytes read"),
            (Exhausted::WriteBytes(2), "2 bytes written"),
            (Exhausted::NewEntries(3), "3 files and directories created"),
            (Exhausted::ListedEntries(4), "4 directory entries"),
            (Exhausted::Depth(5), "5 directories inside"),
            (Exhausted::OpenFiles(6), "6 open files"),
        ] {
            assert!(exhausted.to_string().starts_with(words), "{exhausted}");
        }
    }
}
