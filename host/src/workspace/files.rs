//! The file API of native tools: what may be done to files of the workspace, beneath its handle.

mod atomic;
mod error;
mod open;
mod place;
#[cfg(all(test, unix))]
mod tests;

pub use error::FileError;

#[cfg(unix)]
use super::HardLinks;
use super::{LastLink, Rules, Workspace};
use crate::tool::FileAccess;
use crate::tool::text::elided;
use atomic::replace;
use cap_std::fs::Dir;
use open::{open_to_append, open_to_read};
use place::{Missing, Place};
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};

/// The largest file that is read or written, in bytes. The whole of it is held in memory, twice while it is patched; what is larger is not one text, and has
/// tools of its own.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// The most entries of a directory that are listed. No directory that people arrange has as many, and all names stay below some 25 MiB.
pub const MAX_ENTRIES: usize = 100_000;

/// The files of a workspace, as a native tool may use them.
///
/// A path is relative to the workspace, or absolute and inside it. `..` beyond the root, other absolute paths, and links that lead out are refused, at the
/// moment of use and on the opened directory, so that a link swapped in between leads nowhere. A link that stays inside is followed, except by
/// [`delete`](Self::delete). Nothing is changed in a protected tree: `.git` at any depth and in any letter case, directories of plugins, and what is the host's
/// own; reading there is allowed, but for the last. Nor is anything changed in a repository without a `.git`, and none is made: a file or directory
/// called `HEAD` never comes to stand beside one called `objects`, `refs` or `commondir`. Only regular files are read and written, and nothing waits for a
/// pipe or a device.
///
/// Those that [`ToolContext::files`](crate::ToolContext::files) gives obey the class of the tool as well.
///
/// The calls are synchronous: they hold their thread for as long as the file system takes.
///
/// ```
/// use palisade::Workspace;
///
/// let directory = tempfile::tempdir().expect("a directory");
/// let workspace = Workspace::open(directory.path()).expect("it is there");
/// workspace.files().write("notes/today.txt", "tea")?;
/// workspace.files().patch("notes/today.txt", "tea", "coffee")?;
/// assert_eq!(workspace.files().read("notes/today.txt")?, "coffee");
/// assert!(workspace.files().read("../elsewhere").is_err());
/// # Ok::<(), palisade::workspace::FileError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceFiles<'a> {
    workspace: &'a Workspace,
    access: FileAccess,
}

impl<'a> WorkspaceFiles<'a> {
    pub(super) fn new(workspace: &'a Workspace, access: FileAccess) -> Self {
        Self { workspace, access }
    }

    /// The text of a file.
    ///
    /// # Errors
    ///
    /// As [`read_bytes`](Self::read_bytes), and [`FileError::NotText`] where it is not UTF-8.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        String::from_utf8(self.read_bytes(path)?)
            .map_err(|error| FileError::NotText { path: elided(path, 256), at: error.utf8_error().valid_up_to() })
    }

    /// The bytes of a file, at most [`MAX_FILE_BYTES`].
    ///
    /// # Errors
    ///
    /// [`FileError`] where the path leads out, or names nothing, something that is not a regular file, or one that is too large.
    pub fn read_bytes(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.check_readable_class(path)?;
        let relative = self.workspace.resolve(path, LastLink::Follow)?;
        let fail = |error| FileError::io("read", path, error);
        let file = open_to_read((self.workspace.dir(), &self.workspace.rules()), &relative, path)?;
        let length = file.metadata().map_err(fail)?.len();
        fits(path, length)?;
        read_bounded(file, length).map_err(fail)?.ok_or_else(|| too_large(path, MAX_FILE_BYTES + 1))
    }

    /// Puts a text into a file. As [`write_bytes`](Self::write_bytes).
    ///
    /// # Errors
    ///
    /// As [`write_bytes`](Self::write_bytes).
    pub fn write(&self, path: &str, content: &str) -> Result<(), FileError> {
        self.write_bytes(path, content.as_bytes())
    }

    /// Creates a file with its missing directories, or replaces the content of one that exists and keeps its permissions. In one step: whoever reads it
    /// sees the old content or the new, and where anything fails the old one stays.
    ///
    /// # Errors
    ///
    /// [`FileError`] where the path leads out or into a protected tree, names something that is not a regular file, or the content is too large.
    pub fn write_bytes(&self, path: &str, content: &[u8]) -> Result<(), FileError> {
        fits(path, content.len() as u64)?;
        let place = self.place(path, LastLink::Follow, Missing::Created)?;
        let before = place.regular(path)?;
        let _admission = place.admit(&self.workspace.rules(), path)?;
        replace(&place, content, before.as_ref()).map_err(|error| FileError::io("write", path, error))
    }

    /// Adds a text at the end of a file, which is created where it does not exist. The file stays the same one: whoever has it open sees it grow.
    ///
    /// # Errors
    ///
    /// As [`write_bytes`](Self::write_bytes); the size that counts is the one that the file would have.
    pub fn append(&self, path: &str, content: &str) -> Result<(), FileError> {
        fits(path, content.len() as u64)?;
        let place = self.place(path, LastLink::Follow, Missing::Created)?;
        let fail = |error| FileError::io("append to", path, error);
        let mut file = open_to_append(&place, &self.workspace.rules(), path)?;
        let length = file.metadata().map_err(fail)?.len();
        fits(path, length.saturating_add(content.len() as u64))?;
        file.write_all(content.as_bytes()).map_err(fail)
    }

    /// Whether the path names anything. A link that stays inside and leads nowhere names nothing.
    ///
    /// # Errors
    ///
    /// [`FileError`] where the path leads out, or the system cannot say.
    pub fn exists(&self, path: &str) -> Result<bool, FileError> {
        self.check_readable_class(path)?;
        let relative = self.workspace.resolve(path, LastLink::Follow)?;
        match self.workspace.dir().metadata(&relative) {
            Ok(_) => Ok(true),
            // Nothing lies below a file.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
            Err(error) => Err(FileError::io("look at", path, error)),
        }
    }

    /// The names in a directory, sorted by bytes; a directory's ends in `/` and a symbolic link's in `@`. Bytes that are not UTF-8 show as U+FFFD.
    ///
    /// # Errors
    ///
    /// [`FileError`] where the path leads out, is not a directory, or the directory has more than [`MAX_ENTRIES`].
    pub fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        self.check_readable_class(path)?;
        let relative = self.workspace.resolve(path, LastLink::Follow)?;
        let fail = |error| FileError::io("list", path, error);
        let dir = self.workspace.dir();
        if !dir.metadata(&relative).map_err(fail)?.is_dir() {
            return Err(FileError::NotADirectory(elided(path, 256)));
        }
        let dir = dir.open_dir(&relative).map_err(fail)?;
        let readable = place::check_readable(&self.workspace.rules(), &dir, OsStr::new("."));
        readable.map_err(|why| FileError::forbidden(path, why))?;
        let mut names = names(&dir).map_err(fail)?;
        if names.len() > MAX_ENTRIES {
            return Err(FileError::TooManyEntries { path: elided(path, 256), limit: MAX_ENTRIES });
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes a file. Of a link the link itself is removed, wherever it leads; a pipe, a socket or a device goes like a file.
    ///
    /// # Errors
    ///
    /// [`FileError`] where the path leads out or into a protected tree, or names nothing or a directory.
    pub fn delete(&self, path: &str) -> Result<(), FileError> {
        let place = self.place(path, LastLink::Keep, Missing::Refused)?;
        let fail = |error| FileError::io("delete", path, error);
        if place.metadata().map_err(fail)?.is_dir() {
            return Err(FileError::not_regular(path, "a directory"));
        }
        place.dir.remove_file(&place.name).map_err(fail)
    }

    /// Replaces a text that occurs exactly once in a file. In one step, as [`write`](Self::write).
    ///
    /// # Errors
    ///
    /// [`FileError::NotUnique`] says how often the old text occurs; otherwise as [`read`](Self::read) and [`write`](Self::write).
    pub fn patch(&self, path: &str, old: &str, new: &str) -> Result<(), FileError> {
        // Asked first, so that a protected file is refused as such and not for its content.
        self.place(path, LastLink::Follow, Missing::Refused)?;
        let text = self.read(path)?;
        let (before, after) =
            split_once(&text, old).map_err(|count| FileError::NotUnique { path: elided(path, 256), count })?;
        self.write(path, &[before, new, after].concat())
    }

    fn place(&self, path: &str, last: LastLink, missing: Missing) -> Result<Place, FileError> {
        match self.access {
            FileAccess::ReadWrite => {}
            FileAccess::None => return Err(FileError::Unseen(elided(path, 256))),
            FileAccess::Read => return Err(FileError::ReadOnly(elided(path, 256))),
        }
        let relative = self.workspace.resolve(path, last)?;
        let rules = self.workspace.rules();
        Place::find((self.workspace.dir(), &rules), relative.as_ref(), path, last, missing)
    }

    fn check_readable_class(&self, path: &str) -> Result<(), FileError> {
        match self.access {
            FileAccess::Read | FileAccess::ReadWrite => Ok(()),
            FileAccess::None => Err(FileError::Unseen(elided(path, 256))),
        }
    }
}

/// What stands before and after the only occurrence, or how many there are. Occurrences that overlap are two.
fn split_once<'t>(text: &'t str, old: &str) -> Result<(&'t str, &'t str), usize> {
    let Some(first) = old.chars().next() else { return Err(0) };
    let Some((before, after)) = text.split_once(old) else { return Err(0) };
    let rest = &text[before.len() + first.len_utf8()..];
    if rest.contains(old) { Err(text.matches(old).count().max(2)) } else { Ok((before, after)) }
}

fn names(dir: &Dir) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    // One more than the most, which tells a full directory from one that is too full.
    for entry in dir.entries()?.take(MAX_ENTRIES + 1) {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        names.push(match entry.file_type() {
            Ok(kind) if kind.is_dir() => name + "/",
            Ok(kind) if kind.is_symlink() => name + "@",
            _ => name,
        });
    }
    Ok(names)
}

/// Everything, unless it is more than it said it would be and more than may be.
fn read_bounded(file: std::fs::File, expected: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_FILE_BYTES).then_some(bytes))
}

fn regular(path: &str, metadata: &cap_std::fs::Metadata) -> Result<(), FileError> {
    if metadata.is_file() {
        Ok(())
    } else if metadata.is_dir() {
        Err(FileError::not_regular(path, "a directory"))
    } else if metadata.is_symlink() {
        Err(FileError::not_regular(path, "a symbolic link that leads nowhere"))
    } else {
        Err(FileError::not_regular(path, "a pipe, a device or a socket"))
    }
}

fn fits(path: &str, bytes: u64) -> Result<(), FileError> {
    if bytes <= MAX_FILE_BYTES { Ok(()) } else { Err(too_large(path, bytes)) }
}

fn too_large(path: &str, bytes: u64) -> FileError {
    FileError::TooLarge { path: elided(path, 256), bytes, limit: MAX_FILE_BYTES }
}
