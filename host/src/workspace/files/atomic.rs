//! Replaces a file in one step: a new one beside it takes its name.

use super::place::Place;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};

/// How many names are tried for the new file. A name is 64 random bits, so that a second try is already unheard of.
const ATTEMPTS: usize = 8;

/// Puts `content` in the place, with the permissions of what was there `before`. Where anything fails, what was there stays and nothing stands beside it.
///
/// The data is not forced to the disk: this guards against failures and readers, not against a loss of power.
pub(super) fn replace(place: &Place, content: &[u8], before: Option<&Metadata>) -> io::Result<()> {
    let (temporary, mut file) = Temporary::create(&place.dir)?;
    if let Some(before) = before {
        // Before the content is in it: a private file's is never readable by others, not even for a moment.
        keep_mode(&file, before)?;
    }
    file.write_all(content)?;
    // Some systems refuse to rename what is open.
    drop(file);
    temporary.rename(place)
}

/// A file that is removed unless it gets its final name.
struct Temporary<'a> {
    dir: &'a Dir,
    name: Option<String>,
}

impl<'a> Temporary<'a> {
    fn create(dir: &'a Dir) -> io::Result<(Self, File)> {
        let mut attempt = Self::attempt(dir);
        for _ in 1..ATTEMPTS {
            match &attempt {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt = Self::attempt(dir),
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
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Whoever reads this file's error wants to know why writing failed, not why tidying up did.
            let _ = self.dir.remove_file(name);
        }
    }
}

/// Who may read, write and run it; not the bits that lend an owner's rights, since the owner may be another now.
#[cfg(unix)]
fn keep_mode(file: &File, before: &Metadata) -> io::Result<()> {
    use cap_std::fs::{MetadataExt as _, Permissions, PermissionsExt as _};
    file.set_permissions(Permissions::from_mode(before.mode() & 0o777))
}

#[cfg(not(unix))]
fn keep_mode(file: &File, before: &Metadata) -> io::Result<()> {
    file.set_permissions(before.permissions())
}
