//! Replaces a file atomically, by renaming a temporary file in the same directory.

use super::place::Place;
use cap_std::fs::{Dir, File, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use palisade_wasi_fs::internal::{FormerPermissions, take_permissions};
use rustix::fs::RawMode;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

/// The maximum number of names tried for the temporary file. A name has 64 random bits, so even a
/// second attempt is very unlikely.
const ATTEMPTS: usize = 8;

/// Writes `content` to the place, with the permissions of the file that was there `before`. On
/// failure the old file stays and the temporary file is removed.
///
/// The data is not synced to the disk: this protects against failures and concurrent readers, not
/// against a power loss.
pub(super) fn replace(place: &Place, content: &[u8], before: Option<&Metadata>) -> io::Result<()> {
    let (temporary, mut file) = Temporary::create(place, before)?;
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
    fn create(place: &'a Place, before: Option<&Metadata>) -> io::Result<(Self, File)> {
        let mut attempt = Self::attempt(place, before);
        for _ in 1..ATTEMPTS {
            match &attempt {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    attempt = Self::attempt(place, before);
                }
                _ => break,
            }
        }
        attempt
    }

    fn attempt(place: &'a Place, before: Option<&Metadata>) -> io::Result<(Self, File)> {
        let dir = &place.dir;
        let name = format!(".palisade-{:016x}.tmp", RandomState::new().hash_one(()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if before.is_some() {
            // Another user who holds the empty file open could read the private contents later.
            options.mode(0o600);
        }
        let file = dir.open_with(&name, &options)?;
        let made = Self { dir, name: Some(name) };
        if let Some(before) = before {
            let former = FormerPermissions { mode: before.mode() as RawMode, group: before.gid() };
            take_permissions(file.as_fd(), former, (place.dir.as_fd(), &place.name))?;
        }
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
