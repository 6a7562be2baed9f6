//! The report of a tool besides its output.

use crate::tool::{ErrorKind, Usage};
use std::path::PathBuf;

/// The report of a tool besides its output, also after a failure.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The resources that the call used.
    pub usage: Usage,
    /// The files that the host saw change, relative to the workspace, under their real names.
    pub files_modified: Vec<PathBuf>,
    /// The number of changed files beyond those listed.
    pub files_unlisted: u64,
    /// The reason why a native tool stopped early; the returned output is then partial.
    pub stopped: Option<ErrorKind>,
}

impl Report {
    /// Adds the report of another call.
    pub(crate) fn add(&mut self, other: Self) {
        self.usage.peak_memory_bytes =
            self.usage.peak_memory_bytes.max(other.usage.peak_memory_bytes);
        self.usage.bytes_read += other.usage.bytes_read;
        self.usage.bytes_written += other.usage.bytes_written;
        self.usage.truncated_bytes += other.usage.truncated_bytes;
        self.files_unlisted += other.files_unlisted;
        for file in other.files_modified {
            if !self.files_modified.contains(&file) {
                self.files_modified.push(file);
            }
        }
    }
}
