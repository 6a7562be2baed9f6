//! The errors of a journal.

use std::path::PathBuf;
use std::sync::Arc;

/// The reason why a journal cannot be opened, written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another user could read, change or replace the file. The reason names the remedy.
    #[error(
        "`{path}` is not private, and a journal has to be: {reason}; or name a file in a private \
         directory of its own",
        path = path.display()
    )]
    NotPrivate {
        /// The file or its directory.
        path: PathBuf,
        /// The fault and its remedy.
        reason: String,
    },
    /// A later version of this program wrote the file.
    #[error(
        "the journal `{path}` has format {found}, and this program knows formats up to {known}; \
         use the later program that wrote it, or name another file",
        path = path.display()
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        found: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// The file holds something else, or is damaged.
    #[error(
        "`{path}` cannot be used as a journal ({reason}); move it away, or name another file",
        path = path.display()
    )]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// The fault of the record.
        reason: String,
    },
    /// Another process writes this journal.
    #[error(
        "another process writes the journal `{path}`; end it, or name another file. Reading is \
         possible meanwhile",
        path = path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The system refused an operation on the file or its directory.
    #[error("the journal `{path}` cannot be opened: {reason}", path = path.display())]
    Unavailable {
        /// The file or its directory.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The files are no longer where they were opened. The next process would not find the records
    /// that would be written there now.
    #[error(
        "the journal `{path}` was moved, replaced or removed while it was written; put it back, or \
         start the program again",
        path = path.display()
    )]
    Displaced {
        /// The file that is not in its place.
        path: PathBuf,
    },
    /// The disk has no room for the record. The journal works again as soon as there is room.
    #[error("the journal's disk is full; make room on it")]
    DiskFull,
    /// The record could not be written.
    #[error("the journal cannot be written: {reason}")]
    NotWritten {
        /// The reason.
        reason: Arc<str>,
    },
    /// The journal could not be read.
    #[error("the journal cannot be read: {reason}")]
    NotRead {
        /// The reason.
        reason: Arc<str>,
    },
    /// The journal was closed, or opened for reading only.
    #[error("the journal is closed to records")]
    Closed,
}

impl JournalError {
    /// Returns a stable code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotPrivate { .. } => "journal_not_private",
            Self::NewerVersion { .. } => "journal_newer_version",
            Self::NotAJournal { .. } => "journal_unusable",
            Self::InUse { .. } => "journal_in_use",
            Self::Unavailable { .. } => "journal_unavailable",
            Self::Displaced { .. } => "journal_displaced",
            Self::DiskFull => "journal_disk_full",
            Self::NotWritten { .. } => "journal_not_written",
            Self::NotRead { .. } => "journal_not_read",
            Self::Closed => "journal_closed",
        }
    }

    /// Returns the error of a failed write.
    pub(super) fn writing(error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase};
        match error.sqlite_error_code() {
            Some(DiskFull) => Self::DiskFull,
            Some(DatabaseCorrupt | NotADatabase) => {
                let reason = format!("{error}; move the file away, and start the program again");
                Self::NotWritten { reason: reason.into() }
            }
            _ => Self::NotWritten { reason: error.to_string().into() },
        }
    }

    /// Returns the error of a failed read.
    pub(super) fn reading(error: &rusqlite::Error) -> Self {
        Self::NotRead { reason: error.to_string().into() }
    }
}
