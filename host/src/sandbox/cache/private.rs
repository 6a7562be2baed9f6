//! The directory of the cache, held open: its files are reached by the handle that was checked, and never by a path again.

#[cfg(all(test, unix))]
mod tests;

use super::entry::Key;
use crate::workspace::Workspace;
use cap_std::fs::{Dir, OpenOptions};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the names of files begin that are being written.
const BEGUN: &str = ".tmp";
/// The age from which no process is at work on them any more: the longest compilation takes minutes.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
/// The file of the key.
const KEY: &str = "key";

/// How the names of entries end.
const KINDS: [&str; 4] = ["code", "about", "verdict", "file"];

/// What becomes of a file that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Present {
    Replaced,
    Kept,
}

/// Why a directory cannot be the cache.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The system refused an operation.
    System(io::Error),
    /// Another user could reach it or replace it; the reason names the remedy.
    #[cfg_attr(not(unix), allow(dead_code, reason = "owners and modes are looked at on Unix"))]
    Unsafe(String),
    /// It lies in the workspace.
    Inside,
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// A directory that only this user can reach.
#[derive(Debug)]
pub(super) struct Private {
    dir: Dir,
    /// Where it lay when it was opened, without links.
    real: PathBuf,
}

/// Says what is wrong with a directory that others could reach.
#[cfg(unix)]
pub(super) fn check(owner: u32, mode: rustix::fs::RawMode, me: u32) -> Result<(), String> {
    if owner != me {
        Err("it belongs to another user; name a directory of your own".to_owned())
    } else if mode & 0o077 != 0 {
        // Where anybody may put something, others rely on that.
        let advice = if mode & 0o1002 == 0 { "`chmod 700` makes it private" } else { "name a directory of its own" };
        Err(format!("others can reach it (mode {:03o}); {advice}", mode & 0o7777))
    } else {
        Ok(())
    }
}

/// Refuses a file that another user owns, or that others can read or change. This program makes its
/// files with mode 0600, so that such a file was put there by another program.
#[cfg(unix)]
fn check_file(file: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = file.metadata()?;
    let is_own = meta.uid() == rustix::process::geteuid().as_raw();
    if is_own && meta.mode() & 0o077 == 0 && meta.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a private file of this user"))
}

impl Private {
    /// Opens the directory, and makes it where it is missing. Nothing is made in the workspace.
    #[cfg(unix)]
    pub(super) fn open(path: &Path, workspace: Option<&Workspace>) -> Result<Self, Obstacle> {
        let (handle, real) = super::walk::open_private(path, workspace.map(Workspace::identity))?;
        Ok(Self { dir: Dir::from_std_file(File::from(handle)), real })
    }

    /// On Windows the user's own profile directory, where the cache lies, is private by default.
    #[cfg(not(unix))]
    pub(super) fn open(path: &Path, workspace: Option<&Workspace>) -> Result<Self, Obstacle> {
        let inside = |real: &Path| workspace.is_some_and(|workspace| real.starts_with(workspace.root()));
        let path = std::path::absolute(path)?;
        if path.ancestors().find_map(|path| path.canonicalize().ok()).is_some_and(|real| inside(&real)) {
            return Err(Obstacle::Inside);
        }
        std::fs::create_dir_all(&path)?;
        let real = path.canonicalize()?;
        if inside(&real) {
            return Err(Obstacle::Inside);
        }
        Ok(Self { dir: Dir::open_ambient_dir(&path, cap_std::ambient_authority())?, real })
    }

    /// Where it lay when it was opened, without links.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// Refuses a directory that was made for something else: all that lies in a cache is hidden from tools for good.
    pub(super) fn check_content(&self) -> Result<(), Obstacle> {
        if self.read_key().is_ok() {
            return Ok(());
        }
        for entry in self.dir.entries()? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !is_of_cache(&name) {
                let name = crate::tool::text::elided(&name, 64);
                return Err(Obstacle::Unsafe(format!(
                    "it holds `{name}`, which is no cache's; name an empty directory"
                )));
            }
        }
        Ok(())
    }

    /// Whether there is a file of this name.
    pub(super) fn has_file(&self, name: &str) -> bool {
        self.dir.symlink_metadata(name).is_ok_and(|meta| meta.is_file())
    }

    /// Opens a file for reading. Follows no link, and never waits on a pipe.
    #[cfg(unix)]
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        use crate::workspace::QUIETLY;
        use rustix::fs::{Mode, OFlags, openat};
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | QUIETLY;
        let file = File::from(openat(&self.dir, name, flags, Mode::empty())?);
        check_file(&file)?;
        Ok(file)
    }

    /// Opens a file for reading.
    #[cfg(not(unix))]
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        Ok(self.dir.open(name)?.into_std())
    }

    /// Writes a file whole or not at all, in place of what was there.
    pub(super) fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        self.write(name, parts, Present::Replaced)
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, name: &str) {
        let _ = self.dir.remove_file(name);
    }

    fn write(&self, name: &str, parts: &[&[u8]], present: Present) -> io::Result<()> {
        let (draft, mut file) = self.draft()?;
        let written = parts.iter().try_for_each(|part| file.write_all(part)).and_then(|()| match present {
            Present::Replaced => self.dir.rename(&draft, &self.dir, name),
            // A link fails where the name is taken. Some file systems have no links.
            Present::Kept => self.dir.hard_link(&draft, &self.dir, name).or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Err(error),
                _ if self.has_file(name) => Err(io::ErrorKind::AlreadyExists.into()),
                _ => self.dir.rename(&draft, &self.dir, name),
            }),
        });
        if written.is_err() || present == Present::Kept {
            self.remove(&draft);
        }
        written
    }

    /// A file that gets its name when it is whole.
    fn draft(&self) -> io::Result<(String, cap_std::fs::File)> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("{BEGUN}{:016x}", u64::from_le_bytes(random));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = self.dir.open_with(&name, &options)?;
        Ok((name, file))
    }

    /// Removes what programs that were killed have begun to write and never finished. What is young may belong to one that is at work.
    pub(super) fn clear_abandoned(&self) {
        let age = |name: &str| self.file(name)?.metadata()?.modified()?.elapsed().map_err(io::Error::other);
        for entry in self.dir.entries().into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(BEGUN) && age(&name).is_ok_and(|age| age > ABANDONED) {
                self.remove(&name);
            }
        }
    }

    /// The key that entries are authenticated with, made at first use. A key that is too short, or
    /// that another program could have put there, is replaced: the entries below it are lost, and
    /// with them time alone.
    pub(super) fn key(&self) -> io::Result<Key> {
        match self.read_key() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let fresh = fresh_key()?;
                // Whoever was first wins: two processes that start at once must end with the same key.
                match self.write(KEY, &[&fresh], Present::Kept) {
                    Ok(()) => Ok(fresh),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.read_key(),
                    Err(error) => Err(error),
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) => {
                tracing::warn!("the key of the cache is replaced, and its entries are lost: {error}");
                let fresh = fresh_key()?;
                self.put(KEY, &[&fresh])?;
                Ok(fresh)
            }
            found => found,
        }
    }

    fn read_key(&self) -> io::Result<Key> {
        let mut key = Key::default();
        self.file(KEY)?.read_exact(&mut key)?;
        Ok(key)
    }
}

/// Whether a cache has files of such a name.
fn is_of_cache(name: &str) -> bool {
    let kind = Path::new(name).extension().and_then(|kind| kind.to_str());
    name == KEY || name.starts_with(BEGUN) || kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// Whether a directory looks like a cache that was used: it holds a key of the right length.
pub(super) fn is_cache(path: &Path) -> bool {
    let key = path.join(KEY).symlink_metadata();
    key.is_ok_and(|meta| meta.is_file() && meta.len() == size_of::<Key>() as u64)
}

fn fresh_key() -> io::Result<Key> {
    let mut fresh = Key::default();
    getrandom::fill(&mut fresh).map_err(io::Error::other)?;
    Ok(fresh)
}
