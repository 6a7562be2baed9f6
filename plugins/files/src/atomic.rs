//! Replaces a file atomically: readers see the old content or the new, never a part.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Maximum number of names that are tried for the temporary file. Names have 64 random bits, so
/// that a collision is next to impossible.
const ATTEMPTS: usize = 8;

/// Writes `content` to a temporary file beside `target` and renames it to `target`. On failure the
/// temporary file is removed and `target` is unchanged.
///
/// The data is not synced to disk: this guards against failures and concurrent readers, not against
/// a loss of power. The host gives the file the permissions of the one that it replaces, because
/// WASI can neither read nor set them.
pub(crate) fn replace(target: &Path, content: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = Temporary::beside(target)?;
    file.write_all(content)?;
    // Some systems refuse to rename an open file.
    drop(file);
    temporary.rename(target)
}

/// A file that is removed unless it gets its final name.
struct Temporary {
    path: PathBuf,
    kept: bool,
}

impl Temporary {
    fn beside(target: &Path) -> io::Result<(Self, File)> {
        let mut attempt = Self::create(target);
        for _ in 1..ATTEMPTS {
            match &attempt {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    attempt = Self::create(target);
                }
                _ => break,
            }
        }
        attempt
    }

    fn create(target: &Path) -> io::Result<(Self, File)> {
        // Independent of the target's name, which may already have the maximum length.
        let path = target
            .with_file_name(format!(".palisade-{:016x}.tmp", RandomState::new().hash_one(target)));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok((Self { path, kept: false }, file))
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // Best effort: the error of the write is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn target_is_replaced_without_leftovers() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a".repeat(255));
        replace(&target, b"one").unwrap();
        replace(&target, b"two").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"two");
        assert_eq!(names(directory.path()).len(), 1);
    }

    #[test]
    fn failure_leaves_the_directory_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("taken");
        fs::create_dir_all(target.join("child")).unwrap();
        replace(&target, b"one").unwrap_err();
        assert_eq!(names(directory.path()), ["taken"]);
        assert_eq!(names(&target), ["child"]);
    }

    #[test]
    fn open_old_file_keeps_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("file");
        fs::write(&target, "old").unwrap();
        let reader = File::open(&target).unwrap();
        replace(&target, b"new content").unwrap();
        assert_eq!(io::read_to_string(reader).unwrap(), "old");
    }
}
