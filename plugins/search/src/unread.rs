//! Collects unreadable entries: one of them must neither end a search nor go unreported.

use palisade_guest::{Error, visible};
use std::fmt;
use std::io;
use std::path::Path;

/// The number of unreadable entries, and the first of them.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    count: usize,
    first: Option<String>,
}

impl Unread {
    /// Adds an entry.
    pub(crate) fn add(&mut self, path: &Path, why: impl fmt::Display) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert_with(|| format!("{}: {why}", shown(path)));
    }

    /// Returns a line for the end of an output, or an empty string.
    pub(crate) fn note(&self) -> String {
        match (self.count, &self.first) {
            (0, _) | (_, None) => String::new(),
            (1, Some(first)) => format!("[1 entry could not be read: {first}]\n"),
            (count, Some(first)) => {
                format!("[{count} entries could not be read, among them {first}]\n")
            }
        }
    }
}

/// Formats a path for messages. An empty path is the workspace itself.
pub(crate) fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        "`.`".to_owned()
    } else {
        format!("`{}`", visible(&path.to_string_lossy()))
    }
}

/// Returns the error of an unreadable path that the caller named.
pub(crate) fn refusal(path: &Path, error: io::Error) -> Error {
    let path = shown(path);
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::not_found(format!(
            "{path} does not exist; list_dir and find_files show what does"
        )),
        io::ErrorKind::PermissionDenied => {
            Error::permission_denied(format!("not permitted to read {path} ({})", error.kind()))
        }
        _ => Error::from(error).context(format!("cannot read {path}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_entries_are_counted_and_the_first_named() {
        let mut unread = Unread::default();
        assert_eq!(unread.note(), "");
        unread.add(Path::new("a"), "locked");
        assert_eq!(unread.note(), "[1 entry could not be read: `a`: locked]\n");
        unread.add(Path::new("b"), "locked");
        assert_eq!(unread.note(), "[2 entries could not be read, among them `a`: locked]\n");
    }

    #[test]
    fn unreadable_path_is_named_with_the_reason() {
        let said = |kind| refusal(Path::new(""), io::Error::from(kind)).to_string();
        assert_eq!(
            said(io::ErrorKind::PermissionDenied),
            "not permitted to read `.` (permission denied)"
        );
        assert!(said(io::ErrorKind::NotFound).starts_with("`.` does not exist;"));
        assert_eq!(said(io::ErrorKind::TimedOut), "cannot read `.`: timed out");
        let numbered = refusal(Path::new("a"), io::Error::from_raw_os_error(5)).to_string();
        assert!(
            numbered.starts_with("cannot read `a`: ") && !numbered.contains("os error"),
            "{numbered}"
        );
    }
}
