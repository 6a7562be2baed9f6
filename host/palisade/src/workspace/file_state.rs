//! The state of a file at one time: a program that writes, replaces, creates or removes the file
//! changes it.

use cap_std::fs::{Metadata, MetadataExt as _};
use serde::{Deserialize, Serialize};

/// The state of a path at one time. Equal states are of the same file with the same contents, as
/// far as its file system tells: a write changes the length or one of the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState(Option<FileStamp>);

impl FileState {
    /// The state of a path without a file.
    pub const MISSING: Self = Self(None);

    pub(crate) fn of(file: &Metadata) -> Self {
        Self(Some(FileStamp::of(file)))
    }
}

/// The attributes of a file that a change of its contents shows in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp {
    device: u64,
    number: u64,
    size: u64,
    /// The time of the last write, in seconds and nanoseconds. A program can set it.
    written: (i64, i64),
    /// The time of the last change of the file or its attributes, which no program can set.
    changed: (i64, i64),
}

impl FileStamp {
    pub(crate) fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            number: file.ino(),
            size: file.len(),
            written: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Returns the later of the two times, in seconds since 1970.
    pub(crate) fn last_second(&self) -> i64 {
        self.changed.0.max(self.written.0)
    }

    #[cfg(test)]
    pub(crate) fn changed_at(self, changed: (i64, i64)) -> Self {
        Self { changed, ..self }
    }
}
