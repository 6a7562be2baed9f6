//! Where paths lead, and what is said when one leads nowhere.

use palisade_guest::Error;
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

/// The directory that paths are relative to.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace of this call: a guest's working directory.
    pub(crate) fn here() -> Self {
        Self { root: PathBuf::new() }
    }

    /// Any other directory, as tests need it.
    #[cfg(test)]
    pub(crate) fn of(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The path to hand to the system for a path of the workspace.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        let path = self.root.join(path);
        // The workspace itself is the empty path, which no system call accepts.
        if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
    }
}

/// What a path names, without following it where it is a link.
pub(crate) enum Entry {
    /// Nothing.
    Missing,
    /// A regular file of so many bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link, wherever it leads.
    Link,
    /// A pipe, a device or a socket.
    Special,
}

impl Entry {
    /// Looks at what `target` names; `path` is what the caller calls it.
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

/// A path as it is shown to the caller, who may have meant the workspace itself with an empty one.
pub(crate) fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { "`.`".to_owned() } else { format!("`{}`", visible(&path.to_string_lossy())) }
}

/// A text on one line, in which nothing draws on a terminal or hides: names may hold line breaks and anything else.
pub(crate) fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match c {
            _ if c.is_control() => shown.extend(c.escape_debug()),
            '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}' => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
        }
        shown
    })
}

/// So many bytes, in words.
pub(crate) fn size(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

/// Nothing is there under this path.
pub(crate) fn missing(path: &Path) -> Error {
    Error::not_found(format!("{} does not exist; list_dir and find_files show what does", shown(path)))
}

/// The system refused to do what the verb says to a path.
pub(crate) fn refusal(verb: &str, path: &Path, error: io::Error) -> Error {
    let path_shown = shown(path);
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::permission_denied(format!(
            "not permitted to {verb} {path_shown} ({}): \
             in reach is what lies in the workspace, is not protected, and is open to the user who runs this",
            error.kind()
        )),
        io::ErrorKind::NotADirectory => {
            Error::failed(format!("cannot {verb} {path_shown}: a part of the path is a file and not a directory"))
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::failed(format!("cannot {verb} {path_shown}: there is no space left; no file was changed"))
        }
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
    fn the_workspace_itself_has_a_path_that_the_system_accepts() {
        assert_eq!(Workspace::here().at(Path::new("")), Path::new("."));
        assert_eq!(Workspace::here().at(Path::new("a/b")), Path::new("a/b"));
        assert_eq!(shown(Path::new("")), "`.`");
    }

    #[test]
    fn a_path_that_is_shown_draws_nothing_and_stays_one_line() {
        let path = Path::new("a\u{1b}[2J\nb\u{9b}\u{202e}é\"'ü");
        assert_eq!(shown(path), "`a\\u{1b}[2J\\nb\\u{9b}\\u{202e}é\"'ü`");
    }

    #[test]
    fn one_byte_is_one() {
        assert_eq!([0, 1, 2].map(size), ["0 bytes", "1 byte", "2 bytes"]);
    }

    #[test]
    fn what_the_system_refuses_is_said_with_the_path_and_the_reason() {
        assert_eq!(said(io::ErrorKind::NotFound), "`a/b` does not exist; list_dir and find_files show what does");
        assert!(said(io::ErrorKind::PermissionDenied).starts_with("not permitted to write `a/b` (permission denied)"));
        assert!(said(io::ErrorKind::ReadOnlyFilesystem).starts_with("not permitted to write `a/b`"));
        assert!(said(io::ErrorKind::StorageFull).ends_with("there is no space left; no file was changed"));
        assert_eq!(said(io::ErrorKind::TimedOut), "cannot write `a/b`: timed out");
    }
}
