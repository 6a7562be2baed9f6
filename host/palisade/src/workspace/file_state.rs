//! The state of a file at one time: a program that writes, replaces, creates or removes the file
//! changes it.

use cap_std::fs::{Metadata, MetadataExt as _};

/// The state of a file. Equal states are of the same file with the same contents, as far as its
/// file system tells: a write changes the length or one of the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState(Option<Stamp>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    /// The time of the last write, in seconds and nanoseconds. A program can set it.
    modified: (i64, i64),
    /// The time of the last change of the file or its attributes, which no program can set.
    changed: (i64, i64),
}

impl FileState {
    /// The state of a path without a file.
    pub const MISSING: Self = Self(None);

    pub(crate) fn of(file: &Metadata) -> Self {
        Self(Some(Stamp {
            device: file.dev(),
            inode: file.ino(),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }))
    }
}
