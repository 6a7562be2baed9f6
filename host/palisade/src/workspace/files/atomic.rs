//! Replaces a file atomically, by renaming a temporary file in the same directory.

use super::place::Place;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};

/// The maximum number of names tried for the temporary file. A name has 64 random bits, so even a
/// second attempt is very unlikely.
const ATTEMPTS: usize = 8;

/// Writes `content` to the place, with the permissions of the file that was there `before`. On
/// failure the old file stays and the temporary file is removed.
///
/// The data is not synced to the disk: this protects against failures and concurrent readers, not
/// against a power loss.
pub(super) fn replace(place: &Place, content: &[u8], before: Option<&Metadata>) -> io::Result<()> {
    let (temporary, mut file) = Temporary::create(&place.dir)?;
    if let Some(before) = before {
        // Before the contents are written, so that a private file is never readable by others.
        keep_mode(&file, before)?;
    }
    file.write_all(content)?;
    // Some systems cannot rename an open file.
    drop(file);
    temporary.rename(place)
}

/// Returns whether a name is one of a temporary file, of this API or of another tool that replaces
/// files in the same way: `.palisade-`, sixteen hexadecimal digits, `.tmp`.
pub(crate) fn is_temporary(name: &str) -> bool {
    let digits = name.strip_prefix(".palisade-").and_then(|name| name.strip_suffix(".tmp"));
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// A temporary file that is removed on drop unless it was renamed.
struct Temporary<'a> {
    dir: &'a Dir,
    name: Option<String>,
}

impl<'a> Temporary<'a> {
    fn create(dir: &'a Dir) -> io::Result<(Self, File)> {
        let mut attempt = Self::attempt(dir);
        for _ in 1..ATTEMPTS {
            match &attempt {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    attempt = Self::attempt(dir);
                }
                _ => break,
            }
        }
        attempt
    }

    fn attempt(dir: &'a Dir) -> io::Result<(Self, File)> {
        let name = format!(".palisade-{:016x}.tmp", RandomState::new().hash_one(()));
        let file = dir.open_with(&name, OpenOptions::new().write(true).create_new(true))?;
        Ok((Self { dir, name: Some(name) }, file))
    }

    fn rename(mut self, place: &Place) -> io::Result<()> {
        if let Some(name) = &self.name {
            self.dir.rename(name, &place.dir, &place.name)?;
        }
        // Disarms the clean-up on drop.
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Best effort: the caller needs the error of the write, not of the clean-up.
            let _ = self.dir.remove_file(name);
        }
    }
}

/// Copies the permission bits, but not setuid and setgid, since the new file may have another
/// owner.
fn keep_mode(file: &File, before: &Metadata) -> io::Result<()> {
    use cap_std::fs::{MetadataExt as _, Permissions, PermissionsExt as _};
    file.set_permissions(Permissions::from_mode(before.mode() & 0o777))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_form_is_the_name_of_a_temporary_file() {
        for digits in ["0123456789abcdef", "0123456789ABCDEF"] {
            assert!(is_temporary(&format!(".palisade-{digits}.tmp")), "{digits}");
        }
        for other in [
            ".palisade-0123456789abcde.tmp",
            ".palisade-0123456789abcdeg.tmp",
            ".palisade-0123456789abcdef0.tmp",
            ".palisade-0123456789abcdef.txt",
            "palisade-0123456789abcdef.tmp",
            ".palisade-.tmp",
        ] {
            assert!(!is_temporary(other), "{other}");
        }
    }
}
