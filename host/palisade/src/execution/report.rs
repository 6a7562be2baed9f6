//! The report of a tool besides its output.

use crate::tool::{ErrorKind, Usage};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The most bytes of the names that the reports of several calls list together: as many as that of
/// one.
const LISTED: usize = 64 << 10;

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
        if other.files_modified.is_empty() {
            return;
        }
        let known: HashSet<&Path> = self.files_modified.iter().map(PathBuf::as_path).collect();
        let mut files = other.files_modified;
        files.retain(|file| !known.contains(file.as_path()));
        let mut bytes: usize = known.iter().map(|file| file.as_os_str().len()).sum();
        for file in files {
            bytes = bytes.saturating_add(file.as_os_str().len());
            match bytes <= LISTED {
                true => self.files_modified.push(file),
                false => self.files_unlisted += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(files: impl IntoIterator<Item = String>) -> Report {
        Report {
            files_modified: files.into_iter().map(PathBuf::from).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn file_of_two_calls_is_listed_once() {
        let mut all = changed(["a".to_owned()]);
        all.add(changed(["a".to_owned(), "b".to_owned()]));
        assert_eq!(all.files_modified, [Path::new("a"), Path::new("b")]);
        assert_eq!(all.files_unlisted, 0);
    }

    #[test]
    fn names_of_all_calls_have_one_bound() {
        let mut all = Report::default();
        for call in 0..256 {
            all.add(changed((0..64).map(|file| format!("{call:03}-{file:04}"))));
        }
        assert_eq!(all.files_modified.len(), LISTED / 8);
        assert_eq!(all.files_unlisted, 256 * 64 - (LISTED / 8) as u64);
    }
}
