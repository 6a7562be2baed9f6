//! The cache directory, held open. Its files are reached through the handle that was checked, never
//! by a path again.

#[cfg(test)]
mod tests;

use crate::workspace::{Obstacle, Workspace};
use cap_std::fs::{Dir, OpenOptions};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The key of the authentication codes.
pub(super) type Key = [u8; 32];

/// The name prefix of a file that is being written.
const TEMPORARY: &str = ".tmp";
/// The age at which a temporary file counts as abandoned, well above the time that any write takes.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
/// The name of the key file.
const KEY: &str = "key";

/// The extensions of entries.
const KINDS: [&str; 4] = ["code", "about", "verdict", "file"];

/// The treatment of a file that already has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    Replaced,
    Kept,
}

/// A directory that only this user can reach.
#[derive(Debug)]
pub(super) struct PrivateDir {
    dir: Dir,
    /// The resolved path at the time of opening.
    real: PathBuf,
}

/// Refuses a file that another user owns, or that others can read or change. This program creates
/// its files with mode 0600, so another program put such a file there.
fn check_file(file: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = file.metadata()?;
    let is_own = meta.uid() == rustix::process::geteuid().as_raw();
    if is_own && meta.mode() & 0o077 == 0 && meta.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a private file of this user"))
}

impl PrivateDir {
    /// Opens the directory, and creates it if it is missing. Creates nothing inside the workspace.
    pub(super) fn open(path: &Path, workspace: Option<&Workspace>) -> Result<Self, Obstacle> {
        use crate::workspace::{Missing, open_private};
        let (handle, real) = open_private(path, Missing::Made, workspace)?;
        Ok(Self { dir: Dir::from_std_file(File::from(handle)), real })
    }

    /// Returns the resolved path at the time of opening.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// Refuses a directory that was made for another purpose, because all files in a cache
    /// directory are hidden from tools permanently. A directory with a readable key is a cache
    /// already.
    pub(super) fn check_content(&self) -> Result<(), Obstacle> {
        if self.read_key().is_ok() {
            return Ok(());
        }
        for entry in self.dir.entries()? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !is_cache_file(&name) {
                let name = crate::tool::text::elided(&name, 64);
                return Err(Obstacle::Unsafe(format!(
                    "it holds `{name}`, which is no cache's; name an empty directory"
                )));
            }
        }
        Ok(())
    }

    /// Returns true if a regular file of this name exists.
    pub(super) fn has_file(&self, name: &str) -> bool {
        self.dir.symlink_metadata(name).is_ok_and(|meta| meta.is_file())
    }

    /// Opens a file for reading. Does not follow symlinks, and does not block on a FIFO.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        use crate::workspace::QUIETLY;
        use rustix::fs::{Mode, OFlags, openat};
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | QUIETLY;
        let file = File::from(openat(&self.dir, name, flags, Mode::empty())?);
        check_file(&file)?;
        Ok(file)
    }

    /// Writes a file atomically, in place of an older one.
    pub(super) fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        self.write(name, parts, Existing::Replaced)
    }

    /// Removes a file, if it exists.
    pub(super) fn remove(&self, name: &str) {
        let _ = self.dir.remove_file(name);
    }

    fn write(&self, name: &str, parts: &[&[u8]], existing: Existing) -> io::Result<()> {
        let (temporary, mut file) = self.create_temporary()?;
        let written =
            parts.iter().try_for_each(|part| file.write_all(part)).and_then(|()| match existing {
                Existing::Replaced => self.dir.rename(&temporary, &self.dir, name),
                // A hard link fails if the name is taken. On a file system without hard links, the
                // check and the rename can race.
                Existing::Kept => {
                    self.dir.hard_link(&temporary, &self.dir, name).or_else(|error| {
                        match error.kind() {
                            io::ErrorKind::AlreadyExists => Err(error),
                            _ if self.has_file(name) => Err(io::ErrorKind::AlreadyExists.into()),
                            _ => self.dir.rename(&temporary, &self.dir, name),
                        }
                    })
                }
            });
        if written.is_err() || existing == Existing::Kept {
            self.remove(&temporary);
        }
        written
    }

    /// Creates a temporary file, which is renamed when it is complete.
    fn create_temporary(&self) -> io::Result<(String, cap_std::fs::File)> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("{TEMPORARY}{:016x}", u64::from_le_bytes(random));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = self.dir.open_with(&name, &options)?;
        Ok((name, file))
    }

    /// Removes temporary files that killed processes left behind. A recent one may belong to a
    /// process that is writing it.
    pub(super) fn clear_abandoned(&self) {
        let age = |name: &str| {
            self.file(name)?.metadata()?.modified()?.elapsed().map_err(io::Error::other)
        };
        for entry in self.dir.entries().into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(TEMPORARY) && age(&name).is_ok_and(|age| age > ABANDONED) {
                self.remove(&name);
            }
        }
    }

    /// Returns the names and metadata of all entries.
    pub(super) fn entries(&self) -> io::Result<Vec<(String, cap_std::fs::Metadata)>> {
        let mut entries = Vec::new();
        for entry in self.dir.entries()? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Another process may have removed it meanwhile.
            if let (true, Ok(meta)) = (is_entry(&name), entry.metadata()) {
                entries.push((name, meta));
            }
        }
        Ok(entries)
    }

    /// Returns the authentication key, and creates it at first use. Replaces a key of another
    /// length, and one that another program may have written or read. The entries made with the
    /// old key are lost, which costs only time.
    pub(super) fn key(&self) -> io::Result<Key> {
        match self.read_key() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let fresh = fresh_key()?;
                // The first process wins: two processes that start at once must end with the same
                // key.
                match self.write(KEY, &[&fresh], Existing::Kept) {
                    Ok(()) => Ok(fresh),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.read_key(),
                    Err(error) => Err(error),
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
                ) =>
            {
                tracing::warn!(
                    "the key of the cache is replaced, and its entries are lost: {error}"
                );
                let fresh = fresh_key()?;
                self.put(KEY, &[&fresh])?;
                Ok(fresh)
            }
            found => found,
        }
    }

    fn read_key(&self) -> io::Result<Key> {
        let mut key = Key::default();
        let mut file = self.file(KEY)?;
        if file.metadata()?.len() != key.len() as u64 {
            let reason = "it has another length than a key";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        file.read_exact(&mut key)?;
        Ok(key)
    }
}

/// Returns true if a cache has files with such a name.
fn is_cache_file(name: &str) -> bool {
    name == KEY || name.starts_with(TEMPORARY) || is_entry(name)
}

/// Returns true if an entry has such a name.
fn is_entry(name: &str) -> bool {
    let kind = Path::new(name).extension().and_then(|kind| kind.to_str());
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// Returns true if the directory has a key file of the right length, as a used cache has.
pub(super) fn is_cache(path: &Path) -> bool {
    let key = path.join(KEY).symlink_metadata();
    key.is_ok_and(|meta| meta.is_file() && meta.len() == size_of::<Key>() as u64)
}

fn fresh_key() -> io::Result<Key> {
    let mut fresh = Key::default();
    getrandom::fill(&mut fresh).map_err(io::Error::other)?;
    Ok(fresh)
}
