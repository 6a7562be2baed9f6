//! Replaces a file atomically, by renaming a temporary file in the same directory.

use super::place::Place;
use cap_std::fs::{Dir, File, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
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
    let (temporary, mut file) = Temporary::create(&place.dir, before)?;
    file.write_all(content)?;
    // Some systems cannot rename an open file.
    drop(file);
    temporary.rename(place)
}

/// A temporary file that is removed on drop unless it was renamed.
struct Temporary<'a> {
    dir: &'a Dir,
    name: Option<String>,
}

impl<'a> Temporary<'a> {
    fn create(dir: &'a Dir, before: Option<&Metadata>) -> io::Result<(Self, File)> {
        let mut attempt = Self::attempt(dir, before);
        for _ in 1..ATTEMPTS {
            match &attempt {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    attempt = Self::attempt(dir, before);
                }
                _ => break,
            }
        }
        attempt
    }

    fn attempt(dir: &'a Dir, before: Option<&Metadata>) -> io::Result<(Self, File)> {
        let name = format!(".palisade-{:016x}.tmp", RandomState::new().hash_one(()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if before.is_some() {
            // A private file is never readable by others: nobody may hold the empty file open.
            options.mode(0o600);
        }
        let file = dir.open_with(&name, &options)?;
        let made = Self { dir, name: Some(name) };
        before.map_or(Ok(()), |before| keep_mode(&file, before))?;
        Ok((made, file))
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
    use cap_std::fs::{Permissions, PermissionsExt as _};
    file.set_permissions(Permissions::from_mode(before.mode() & 0o777))
}
