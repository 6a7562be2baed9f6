//! The bounds of a journal.

use std::time::Duration;

/// How long and how much a journal keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalSettings {
    /// The age at which a record is removed; 30 days by default.
    pub max_age: Duration,
    /// The size of the file, in bytes; 256 MiB by default. The oldest records are removed when
    /// seven eighths of it are used. Less than 4 MiB counts as 4 MiB.
    pub max_bytes: u64,
}

impl Default for JournalSettings {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(30 * 24 * 60 * 60), max_bytes: 256 << 20 }
    }
}

impl JournalSettings {
    /// Returns the used bytes above which the oldest records are removed.
    pub(super) fn full_at(&self) -> u64 {
        self.max_bytes.max(4 << 20) / 8 * 7
    }
}
