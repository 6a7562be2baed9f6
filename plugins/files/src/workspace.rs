//! Resolves paths of the workspace, and formats errors about them.

use palisade_guest::{Error, visible};
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

/// The directory that paths are relative to.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Returns the workspace of this call: the working directory of a guest.
    pub(crate) fn here() -> Self {
        Self { root: PathBuf::new() }
    }

    /// Returns another directory as the workspace, for tests.
    #[cfg(test)]
    pub(crate) fn of(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the path for system calls.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        let path = self.root.join(path);
        // The path of the workspace itself is empty, which no system call accepts.
        if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
    }
}

/// The type of a path, without following a symlink.
pub(crate) enum Entry {
    /// The path does not exist.
    Missing,
    /// A regular file with its size in bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link, with any target.
    Link,
    /// A pipe, a device or a socket.
    Special,
}

impl Entry {
    /// Returns the type of `target`; `path` is its name for messages.
    pub(crate) fn look(target: &Path, path: &Path) -> Result<Self, Error> {
        match fs::symlink_metadata(target) {
            Ok(metadata) => Ok(Self::of(metadata.file_type(), metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::Missing),
            Err(error) => Err(refusal("reach", path, error)),
        }
    }

    fn of(kind: FileType, bytes: u64) -> Self {
        if kind.is_symlink() {
            Self::Link
        } else if kind.is_dir() {
            Self::Directory
        } else if kind.is_file() {
            Self::File(bytes)
        } else {
            Self::Special
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

/// Formats a number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

/// Returns the error of a path that does not exist.
pub(crate) fn missing(path: &Path) -> Error {
    Error::not_found(format!(
        "{} does not exist; list_dir and find_files show what does",
        shown(path)
    ))
}

/// Returns the error of a refused operation; `verb` names the operation.
pub(crate) fn refusal(verb: &str, path: &Path, error: io::Error) -> Error {
    let path_shown = shown(path);
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::permission_denied(format!(
                "not permitted to {verb} {path_shown} ({}): \
             in reach is what lies in the workspace, is not protected, and is open to the user who runs this",
                error.kind()
            ))
        }
        io::ErrorKind::NotADirectory => Error::failed(format!(
            "cannot {verb} {path_shown}: a part of the path is a file and not a directory"
        )),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::failed(format!(
            "cannot {verb} {path_shown}: there is no space left; no file was changed"
        )),
        _ => Error::from(error).context(format!("cannot {verb} {path_shown}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: io::ErrorKind) -> String {
        refusal("write", Path::new("a/b"), io::Error::from(kind)).to_string()
    }

    #[test]
    fn empty_path_becomes_the_current_directory() {
        assert_eq!(Workspace::here().at(Path::new("")), Path::new("."));
        assert_eq!(Workspace::here().at(Path::new("a/b")), Path::new("a/b"));
        assert_eq!(shown(Path::new("")), "`.`");
    }

    #[test]
    fn displayed_path_is_escaped_on_one_line() {
        let path = Path::new("a\u{1b}[2J\nb\u{9b}\u{202e}é\"'ü");
        assert_eq!(shown(path), "`a\\u{1b}[2J\\nb\\u{9b}\\u{202e}é\"'ü`");
    }

    #[test]
    fn size_of_one_byte_is_singular() {
        assert_eq!([0, 1, 2].map(size), ["0 bytes", "1 byte", "2 bytes"]);
    }

    #[test]
    fn system_error_has_path_and_reason() {
        assert_eq!(
            said(io::ErrorKind::NotFound),
            "`a/b` does not exist; list_dir and find_files show what does"
        );
        assert!(
            said(io::ErrorKind::PermissionDenied)
                .starts_with("not permitted to write `a/b` (permission denied)")
        );
        assert!(
            said(io::ErrorKind::ReadOnlyFilesystem).starts_with("not permitted to write `a/b`")
        );
        assert!(
            said(io::ErrorKind::StorageFull)
                .ends_with("there is no space left; no file was changed")
        );
        assert_eq!(said(io::ErrorKind::TimedOut), "cannot write `a/b`: timed out");
    }
}
