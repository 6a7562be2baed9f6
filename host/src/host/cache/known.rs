//! The caches that the user's hosts have opened, recorded as one small file each in the user's
//! state directory. Later runs hide them even if they use another cache or none, so that their keys
//! stay secret.

use crate::host::state_directories;
use crate::sandbox::has_settled;
use crate::workspace::{LastLink, open_regular, within};
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The longest path that is read back, in bytes; no system supports a longer one.
const MAX_PATH: u64 = 4_200;
/// From this number of records on, a record is removed if its cache and the parent directory are
/// gone. Tests and scripts use many caches for one run each.
const MANY: usize = 16;
/// From this number of records on, every record of a removed cache is removed.
const TOO_MANY: usize = 128;
/// The most records, because every host scans all of them.
const MOST: usize = 512;

/// The time limit for scanning the recorded caches before one is added.
const PATIENCE: Duration = Duration::from_secs(1);

/// One directory of records.
#[derive(Debug)]
pub(super) struct Known {
    dir: PathBuf,
}

impl Known {
    /// Returns the records of this process's user, one set per state directory.
    pub(super) fn of_user() -> Vec<Self> {
        let dirs = state_directories().into_iter().map(|state| state.join("palisade").join("caches"));
        dirs.map(|dir| Self { dir }).collect()
    }

    #[cfg(test)]
    pub(super) fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Returns the directory of the records.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the recorded caches.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        self.records().into_iter().map(|(_, cache)| cache).collect()
    }

    /// Records a cache by its absolute path.
    ///
    /// # Errors
    ///
    /// An error if the record cannot be written, `QuotaExceeded` if there are too many.
    pub(super) fn add(&self, cache: &Path) -> io::Result<()> {
        let cache = std::path::absolute(cache)?;
        let name = blake3::hash(cache.as_os_str().as_encoded_bytes()).to_hex();
        let record = self.dir.join(name.as_str());
        if read(&record).as_ref() == Some(&cache) {
            return Ok(());
        }
        make_private(&self.dir)?;
        self.make_room()?;
        let mut draft = tempfile::Builder::new().prefix(".tmp").tempfile_in(&self.dir)?;
        draft.write_all(&bytes(&cache)?)?;
        // The record must be on disk before the cache's key is.
        draft.as_file().sync_all()?;
        draft.persist(record)?;
        #[cfg(unix)]
        fs::File::open(&self.dir)?.sync_all()?;
        Ok(())
    }

    fn make_room(&self) -> io::Result<()> {
        let records = self.records();
        if records.len() < MANY {
            return Ok(());
        }
        // A cache on a file system that hangs keeps all records.
        let count = records.len();
        let past = within(PATIENCE, move || past(records)).unwrap_or_default();
        let removed = past.iter().filter(|file| fs::remove_file(file).is_ok()).count();
        if count - removed < MOST {
            return Ok(());
        }
        let dir = self.dir.display();
        let why = format!("{MOST} caches are remembered in `{dir}`; remove those that are not used, and their records");
        Err(io::Error::new(ErrorKind::QuotaExceeded, why))
    }

    /// Returns a stamp that changes with the records, or `None` if there are none.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        Stamp::of(&fs::metadata(&self.dir).ok()?)
    }

    /// Returns each readable record with its cache.
    fn records(&self) -> Vec<(PathBuf, PathBuf)> {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        files.filter_map(|file| read(&file).map(|cache| (file, cache))).collect()
    }
}

/// Returns the records that are obsolete.
fn past(records: Vec<(PathBuf, PathBuf)>) -> Vec<PathBuf> {
    let is_gone = |path: &Path| path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let are_too_many = records.len() >= TOO_MANY;
    let is_past = |cache: &Path| if are_too_many { is_gone(cache) } else { cache.parent().is_some_and(is_gone) };
    records.into_iter().filter(|(_, cache)| is_past(cache)).map(|(file, _)| file).collect()
}

/// The state of a directory, which changes when an entry is added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    #[cfg(unix)]
    object: (u64, u64),
    changed: SystemTime,
}

impl Stamp {
    #[cfg(unix)]
    fn of(meta: &fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let nanoseconds = u32::try_from(meta.ctime_nsec()).ok()?;
        let since = Duration::new(u64::try_from(meta.ctime()).ok()?, nanoseconds);
        let changed = SystemTime::UNIX_EPOCH.checked_add(since)?;
        Some(Self { object: (meta.dev(), meta.ino()), changed })
    }

    #[cfg(not(unix))]
    fn of(meta: &fs::Metadata) -> Option<Self> {
        Some(Self { changed: meta.modified().ok()? })
    }

    /// Returns true if a later change would produce another stamp, given the clock's granularity.
    pub(super) fn is_settled(&self) -> bool {
        has_settled(self.changed, SystemTime::now())
    }
}

fn read(file: &Path) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    open_regular(file, LastLink::Keep).ok()?.take(MAX_PATH).read_to_end(&mut bytes).ok()?;
    let path = PathBuf::from(from_bytes(bytes)?);
    path.is_absolute().then_some(path)
}

fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have paths that are not written down")]
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(path.as_os_str().as_bytes().to_vec())
}

#[cfg(not(unix))]
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let text = path.to_str().ok_or_else(|| io::Error::other("its path is not Unicode"))?;
    Ok(text.as_bytes().to_vec())
}

#[cfg(unix)]
fn from_bytes(bytes: Vec<u8>) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt as _;
    (!bytes.contains(&0)).then(|| OsString::from_vec(bytes))
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    #[test]
    fn what_was_opened_once_is_remembered_once_and_what_is_gone_is_forgotten_among_many() {
        let outer = tempfile::tempdir().unwrap();
        let known = Known { dir: outer.path().join("state/caches") };
        assert!(known.all().is_empty());
        let there = outer.path().join("there");
        fs::create_dir(&there).unwrap();
        for _ in 0..2 {
            known.add(&there).unwrap();
        }
        assert_eq!(known.all(), std::slice::from_ref(&there));
        let missing = outer.path().join("missing");
        known.add(&missing).unwrap();
        for number in 0..MANY {
            known.add(&outer.path().join("gone").join(number.to_string())).unwrap();
        }
        assert!(known.all().len() < MANY);
        assert!(known.all().contains(&there) && known.all().contains(&missing));
        for number in 0..TOO_MANY {
            known.add(&outer.path().join(number.to_string())).unwrap();
        }
        assert!(known.all().len() < TOO_MANY);
        assert!(known.all().contains(&there) && !known.all().contains(&missing));
    }

    #[test]
    fn a_record_that_is_no_absolute_path_names_nothing() {
        let outer = tempfile::tempdir().unwrap();
        for (name, content) in [("a", "relative"), ("b", ""), ("c", "/with\0zero")] {
            fs::write(outer.path().join(name), content).unwrap();
        }
        assert!(Known { dir: outer.path().to_owned() }.all().is_empty());
    }

    #[test]
    fn a_record_that_was_lost_in_part_is_written_again() {
        let outer = tempfile::tempdir().unwrap();
        let known = Known { dir: outer.path().to_owned() };
        let cache = Path::new("/a/cache");
        known.add(cache).unwrap();
        for broken in ["", "/a", "/another/cache"] {
            let record = fs::read_dir(outer.path()).unwrap().next().unwrap().unwrap().path();
            fs::write(&record, broken).unwrap();
            known.add(cache).unwrap();
            assert_eq!(known.all(), [cache], "{broken:?}");
        }
    }

    #[test]
    fn beyond_a_bound_no_cache_is_remembered_while_all_the_others_are_there() {
        let outer = tempfile::tempdir().unwrap();
        let known = Known { dir: outer.path().join("records") };
        make_private(&known.dir).unwrap();
        let there = |number: usize| outer.path().join(format!("{number}"));
        for number in 0..MOST {
            fs::create_dir(there(number)).unwrap();
            fs::write(known.dir.join(number.to_string()), bytes(&there(number)).unwrap()).unwrap();
        }
        assert_eq!(known.add(outer.path()).unwrap_err().kind(), ErrorKind::QuotaExceeded);
        fs::remove_dir(there(7)).unwrap();
        known.add(outer.path()).unwrap();
    }
}
