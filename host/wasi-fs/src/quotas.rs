//! The quotas of file systems, and the counters behind them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// The file descriptors of the `ResourceBudget`.
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

/// Quotas that several file systems use up together, in addition to their own: those of the calls
/// that one call makes, for example. [`Quotas::depth`] is not shared.
///
/// ```
/// use palisade_wasi_fs::{Options, Quotas, SharedQuotas};
/// use std::sync::Arc;
///
/// let shared = Arc::new(SharedQuotas::new(Quotas::default()));
/// let options = [0, 1].map(|_| Options::default().within(shared.clone()));
/// # drop(options);
/// ```
#[derive(Debug)]
pub struct SharedQuotas(Counters);

impl SharedQuotas {
    /// Creates quotas of which nothing is used yet.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self(Counters::new(quotas))
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.0
    }
}

/// The usage of all quotas that are counted.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) read: Counter,
    pub(super) write: Counter,
    pub(super) entries: Counter,
    pub(super) listed: Counter,
}

impl Counters {
    pub(super) fn new(quotas: Quotas) -> Self {
        Self {
            read: Counter::new(quotas.read_bytes),
            write: Counter::new(quotas.write_bytes),
            entries: Counter::new(quotas.new_entries),
            listed: Counter::new(quotas.listed_entries),
        }
    }
}

/// A bounded counter. Relaxed ordering suffices, since it publishes no other data.
#[derive(Debug)]
pub(super) struct Counter {
    used: AtomicU64,
    limit: u64,
}

impl Counter {
    fn new(limit: u64) -> Self {
        Self { used: AtomicU64::new(0), limit }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// Adds to the counter. If that would exceed the limit, adds nothing and returns the limit as
    /// an error.
    pub(super) fn take(&self, amount: u64) -> Result<(), u64> {
        let add = |used: u64| used.checked_add(amount).filter(|sum| *sum <= self.limit);
        let added = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        added.map(drop).map_err(|_| self.limit)
    }

    pub(super) fn give_back(&self, amount: u64) {
        let reduce = |used: u64| Some(used.saturating_sub(amount));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reduce);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
