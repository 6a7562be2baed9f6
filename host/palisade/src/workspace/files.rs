//! The file API of native tools: operations beneath the handle of the workspace.

mod atomic;
mod error;
mod open;
mod place;
mod planted;
#[cfg(test)]
mod tests;

pub use error::FileError;

use super::{FileState, HardLinks, LastLink, ProtectedPaths, Standing, Workspace};
use crate::tool::FileAccess;
use crate::tool::text::elided;
use atomic::replace;
use cap_std::fs::{Dir, Metadata};
use open::{open_to_append, open_to_read};
use place::{Missing, Place, check_destination, listed_place};
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};

/// The maximum size of a file to read or write, in bytes. The contents are held in memory, twice
/// during a patch; larger files are not single texts and need tools of their own.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// The maximum number of listed directory entries. Directories arranged by people have fewer, and
/// all names together stay below some 25 MiB.
pub const MAX_ENTRIES: usize = 100_000;

/// The file API of a workspace for native tools.
///
/// A path is relative to the workspace, or absolute and inside it. Paths that lead out by `..`, by
/// a link or as another absolute path are refused. The check happens at the moment of use, on the
/// opened directory, so that a concurrently swapped link cannot lead out. A link that stays inside
/// is followed, except by [`delete`](Self::delete).
///
/// Protected trees are read-only: `.git` at any depth and in any letter case, directories of
/// plugins, and the host's own files, which are not readable either. Bare git repositories are
/// read-only as well, and none can be created: a file or directory called `HEAD` never comes to
/// stand beside one called `objects`, `refs` or `commondir`. Only regular files are read and
/// written, so that no operation waits for a pipe or a device.
///
/// The [path rules](super::PathRules) of a host hold here as well: a denied path is refused by its
/// name and by the place of its directory, and is in no listing.
///
/// The API returned by [`ToolContext::files`](crate::ToolContext::files) also obeys the class of
/// the tool.
///
/// The methods are synchronous and block their thread during the file operation.
///
/// ```
/// use palisade::workspace::Workspace;
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

    /// Returns the text of a file.
    ///
    /// # Errors
    ///
    /// As [`read_bytes`](Self::read_bytes), and [`FileError::NotText`] if the file is not UTF-8.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        String::from_utf8(self.read_bytes(path)?).map_err(|error| FileError::NotText {
            path: elided(path, 256),
            at: error.utf8_error().valid_up_to(),
        })
    }

    /// Returns the bytes of a file, at most [`MAX_FILE_BYTES`].
    ///
    /// # Errors
    ///
    /// [`FileError`] if the path leads out, the file does not exist, is not regular, or is too
    /// large.
    pub fn read_bytes(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.read_with_state(path).map(|(bytes, _)| bytes)
    }

    /// Returns the bytes of a file, at most [`MAX_FILE_BYTES`], and the state of the file before it
    /// was read.
    ///
    /// # Errors
    ///
    /// As [`read_bytes`](Self::read_bytes).
    pub fn read_with_state(&self, path: &str) -> Result<(Vec<u8>, FileState), FileError> {
        self.check_readable_class(path)?;
        let relative = self.resolve(path, LastLink::Follow)?;
        let fail = |error| FileError::io("read", path, error);
        let file = open_to_read((self.workspace.dir(), &self.workspace.rules()), &relative, path)?;
        let metadata = Metadata::from_file(&file).map_err(fail)?;
        let length = metadata.len();
        fits(path, length)?;
        let bytes = read_bounded(file, length).map_err(fail)?;
        let bytes = bytes.ok_or_else(|| too_large(path, MAX_FILE_BYTES + 1))?;
        Ok((bytes, FileState::of(&metadata)))
    }

    /// Returns the state of a symbolic link itself, or `None` if the path is not one.
    #[must_use]
    pub fn state_of_link(&self, path: &str) -> Option<FileState> {
        let relative = self.resolve(path, LastLink::Keep).ok()?;
        let entry = self.workspace.dir().symlink_metadata(relative).ok()?;
        entry.is_symlink().then(|| FileState::of(&entry))
    }

    /// Writes a text to a file, as [`write_bytes`](Self::write_bytes).
    ///
    /// # Errors
    ///
    /// As [`write_bytes`](Self::write_bytes).
    pub fn write(&self, path: &str, content: &str) -> Result<(), FileError> {
        self.write_bytes(path, content.as_bytes())
    }

    /// Creates a file with its missing directories, or replaces the contents of an existing file
    /// and keeps its permissions. The replacement is atomic: readers see the old contents or the
    /// new, and the old contents stay if any step fails.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the path leads out or into a protected tree, the file is not regular, or
    /// the contents are too large.
    pub fn write_bytes(&self, path: &str, content: &[u8]) -> Result<(), FileError> {
        fits(path, content.len() as u64)?;
        let place = self.place(path, LastLink::Follow, Missing::Created)?;
        let before = place.regular(path)?;
        let _admission = place.admit(&self.workspace.rules(), path)?;
        replace(&place, content, before.as_ref())
            .map_err(|error| FileError::io("write", path, error))
    }

    /// Checks whether a file could be written, without writing it: for a display of a change that
    /// is not made yet. Another process may change the answer at any time.
    ///
    /// # Errors
    ///
    /// As [`write_bytes`](Self::write_bytes), except for the contents.
    pub fn check_change(&self, path: &str) -> Result<(), FileError> {
        match self.place(path, LastLink::Follow, Missing::Refused) {
            Ok(place) => place.regular(path).map(drop),
            // The file, or a directory on the way, would be created.
            Err(FileError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Appends a text to a file, which is created if missing. The file is not replaced: programs
    /// that hold it open see it grow.
    ///
    /// # Errors
    ///
    /// As [`write_bytes`](Self::write_bytes); the size limit applies to the resulting file.
    pub fn append(&self, path: &str, content: &str) -> Result<(), FileError> {
        fits(path, content.len() as u64)?;
        let place = self.place(path, LastLink::Follow, Missing::Created)?;
        let fail = |error| FileError::io("append to", path, error);
        let mut file = open_to_append(&place, &self.workspace.rules(), path)?;
        let length = file.metadata().map_err(fail)?.len();
        fits(path, length.saturating_add(content.len() as u64))?;
        file.write_all(content.as_bytes()).map_err(fail)
    }

    /// Returns whether the path exists. A dangling link that stays inside does not.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the path leads out, or the system cannot tell.
    pub fn exists(&self, path: &str) -> Result<bool, FileError> {
        self.check_readable_class(path)?;
        let relative = self.resolve(path, LastLink::Follow)?;
        match self.workspace.dir().metadata(&relative) {
            Ok(found) if !self.permits(&relative, found.is_dir()) => {
                Err(FileError::Excluded(elided(path, 256)))
            }
            Ok(_) => Ok(true),
            // A path below a regular file does not exist either.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(FileError::io("look at", path, error)),
        }
    }

    /// Returns the names in a directory, sorted by bytes; those of directories end in `/`. A name
    /// behind the listed path and a `/` is a path that every method takes. An entry whose name is
    /// not UTF-8 is left out, because no path argument can name it.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the path leads out, is not a directory, or the directory has more than
    /// [`MAX_ENTRIES`].
    pub fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        self.check_readable_class(path)?;
        let relative = self.resolve(path, LastLink::Follow)?;
        let fail = |error| FileError::io("list", path, error);
        let dir = self.workspace.dir();
        if !dir.metadata(&relative).map_err(fail)?.is_dir() {
            return Err(FileError::NotADirectory(elided(path, 256)));
        }
        // A link may lead to one of the host's own directories.
        let real = dir.canonicalize(&relative).map_err(fail)?;
        let private = self.workspace.rules().check_private(&real.to_string_lossy());
        private.map_err(|why| FileError::forbidden(path, why))?;
        let dir = dir.open_dir(&relative).map_err(fail)?;
        let readable = place::check_readable(&self.workspace.rules(), &dir, OsStr::new("."));
        readable.map_err(|why| FileError::forbidden(path, why))?;
        let too_many = || FileError::TooManyEntries { path: elided(path, 256), limit: MAX_ENTRIES };
        let rules = self.workspace.rules();
        let place = listed_place(&rules, &dir).map_err(|why| FileError::forbidden(path, why))?;
        let mut names = names(&dir).map_err(fail)?.ok_or_else(too_many)?;
        if let Some(place) = place {
            names.retain(|name| permits_entry(&rules, &place, name));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes a file. A symbolic link itself is removed, not its target; pipes, sockets and
    /// devices are removed like files.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the path leads out or into a protected tree, does not exist, or is a
    /// directory.
    pub fn delete(&self, path: &str) -> Result<(), FileError> {
        let place = self.place(path, LastLink::Keep, Missing::Refused)?;
        let fail = |error| FileError::io("delete", path, error);
        if place.metadata().map_err(fail)?.is_dir() {
            return Err(FileError::not_regular(path, "a directory"));
        }
        place.dir.remove_file(&place.name).map_err(fail)
    }

    /// Replaces the only occurrence of a text in a file, atomically as [`write`](Self::write).
    ///
    /// # Errors
    ///
    /// [`FileError::NotUnique`] with the number of occurrences; otherwise as [`read`](Self::read)
    /// and [`write`](Self::write).
    pub fn patch(&self, path: &str, old: &str, new: &str) -> Result<(), FileError> {
        // Check the path first, so that a protected file is refused as such and not for its
        // contents.
        self.place(path, LastLink::Follow, Missing::Refused)?;
        let text = self.read(path)?;
        let (before, after) = split_once(&text, old)
            .map_err(|count| FileError::NotUnique { path: elided(path, 256), count })?;
        self.write(path, &[before, new, after].concat())
    }

    fn place(&self, path: &str, last: LastLink, missing: Missing) -> Result<Place, FileError> {
        match self.access {
            FileAccess::ReadWrite => {}
            FileAccess::None => return Err(FileError::Unseen(elided(path, 256))),
            FileAccess::Read => return Err(FileError::ReadOnly(elided(path, 256))),
        }
        let relative = self.resolve(path, last)?;
        let rules = self.workspace.rules();
        Place::find((self.workspace.dir(), &rules), relative.as_ref(), path, last, missing)
    }

    /// Returns whether the path rules permit the place that a path leads to.
    fn permits(&self, relative: &str, is_dir: bool) -> bool {
        let rules = self.workspace.rules();
        if !rules.filter_anything() {
            return true;
        }
        let real = self.workspace.dir().canonicalize(relative).ok();
        let real = real.as_ref().and_then(|real| real.to_str());
        real.is_some_and(|real| is_permitted(&rules, real, is_dir))
    }

    /// Resolves a path, and refuses one that the path rules leave out, by its names or behind its
    /// links.
    fn resolve(&self, path: &str, last: LastLink) -> Result<String, FileError> {
        let relative = self.workspace.resolve(path, last)?;
        let rules = self.workspace.rules();
        let root = self.workspace.dir();
        rules
            .check_private(&relative)
            .and_then(|()| rules.check_allowed(&relative))
            .and_then(|()| check_destination((root, &rules), relative.as_ref(), last))
            .map_err(|why| FileError::forbidden(path, why))?;
        Ok(relative)
    }

    fn check_readable_class(&self, path: &str) -> Result<(), FileError> {
        match self.access {
            FileAccess::Read | FileAccess::ReadWrite => Ok(()),
            FileAccess::None => Err(FileError::Unseen(elided(path, 256))),
        }
    }
}

/// Returns the text before and after the only occurrence, or the number of occurrences. Overlapping
/// occurrences count as two.
fn split_once<'t>(text: &'t str, old: &str) -> Result<(&'t str, &'t str), usize> {
    let Some(first) = old.chars().next() else { return Err(0) };
    let Some((before, after)) = text.split_once(old) else { return Err(0) };
    let rest = &text[before.len() + first.len_utf8()..];
    if rest.contains(old) { Err(text.matches(old).count().max(2)) } else { Ok((before, after)) }
}

/// Returns whether the path rules permit an entry of a directory, whose name ends in `/` if it is a
/// directory itself.
fn permits_entry(rules: &ProtectedPaths, place: &str, name: &str) -> bool {
    let (name, is_dir) = name.strip_suffix('/').map_or((name, false), |name| (name, true));
    let path = if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
    is_permitted(rules, &path, is_dir)
}

fn is_permitted(rules: &ProtectedPaths, path: &str, is_dir: bool) -> bool {
    match rules.standing_of(path) {
        Standing::Permitted => true,
        Standing::Way => is_dir,
        Standing::Denied => false,
    }
}

/// Returns the names in a directory, or none if it has more entries than the maximum.
fn names(dir: &Dir) -> io::Result<Option<Vec<String>>> {
    let mut names = Vec::new();
    for (count, entry) in dir.entries()?.enumerate() {
        let entry = entry?;
        if count == MAX_ENTRIES {
            return Ok(None);
        }
        let Ok(name) = entry.file_name().into_string() else { continue };
        names.push(match entry.file_type() {
            Ok(kind) if kind.is_dir() => name + "/",
            Ok(_) | Err(_) => name,
        });
    }
    Ok(Some(names))
}

/// Reads a whole file. Returns none if it has grown beyond the limit since its size was checked.
fn read_bounded(file: std::fs::File, expected: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_FILE_BYTES).then_some(bytes))
}

fn regular(path: &str, metadata: &Metadata) -> Result<(), FileError> {
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
