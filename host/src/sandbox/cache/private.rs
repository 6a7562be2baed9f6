//! The directory of the cache, which only its user can reach, and the key in it.

use super::entry::Key;
use crate::workspace::{LastLink, open_regular};
use std::fs::{self, DirBuilder};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

/// How the names of files begin that are being written.
const BEGUN: &str = ".tmp";
/// The age from which nobody is at work on them any more: the longest compilation takes minutes.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes the directory where it is missing.
pub(super) fn make(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Says what is wrong with a directory that others could reach.
#[cfg(unix)]
pub(super) fn check(dir: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = fs::symlink_metadata(dir).map_err(|error| error.to_string())?;
    let me = rustix::process::geteuid().as_raw();
    if !meta.is_dir() {
        Err("it is not a directory".to_owned())
    } else if meta.uid() != me {
        Err("it belongs to another user".to_owned())
    } else if meta.mode() & 0o077 != 0 {
        let mode = meta.mode() & 0o7777;
        // Where anybody may put something, others rely on that.
        let advice = if mode & 0o1002 == 0 { "`chmod 700` makes it private" } else { "name a directory of its own" };
        Err(format!("others can reach it (mode {mode:03o}); {advice}"))
    } else {
        Ok(())
    }
}

/// On Windows the user's own profile directory, where the cache lives, is private by default.
#[cfg(not(unix))]
pub(super) fn check(dir: &Path) -> Result<(), String> {
    let meta = fs::symlink_metadata(dir).map_err(|error| error.to_string())?;
    if meta.is_dir() { Ok(()) } else { Err("it is not a directory".to_owned()) }
}

/// A file that gets its name when it is whole.
pub(super) fn begin(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(BEGUN).tempfile_in(dir)
}

/// Removes what programs that were killed have begun to write and never finished. What is young may belong to one that is at work.
pub(super) fn clear_abandoned(dir: &Path) {
    let is_old = |meta: &fs::Metadata| {
        meta.is_file() && meta.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED))
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_temporary = entry.file_name().to_string_lossy().starts_with(BEGUN);
        if is_temporary && entry.metadata().is_ok_and(|meta| is_old(&meta)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The key that entries are authenticated with, made at first use. One that is too short is replaced: all that is lost is time.
pub(super) fn key(dir: &Path) -> io::Result<Key> {
    let path = dir.join("key");
    match read_key(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (fresh, file) = fresh_key(dir)?;
            // Whoever was first wins: two processes that start at once must end with the same key.
            match file.persist_noclobber(&path) {
                Ok(_) => Ok(fresh),
                Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => read_key(&path),
                Err(failed) => Err(failed.error),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let (fresh, file) = fresh_key(dir)?;
            file.persist(&path)?;
            Ok(fresh)
        }
        found => found,
    }
}

fn fresh_key(dir: &Path) -> io::Result<(Key, tempfile::NamedTempFile)> {
    let mut fresh = Key::default();
    getrandom::fill(&mut fresh).map_err(io::Error::other)?;
    let mut file = begin(dir)?;
    file.write_all(&fresh)?;
    Ok((fresh, file))
}

fn read_key(path: &Path) -> io::Result<Key> {
    let mut key = Key::default();
    open_regular(path, LastLink::Keep)?.read_exact(&mut key)?;
    Ok(key)
}
