//! The paths that runs record for other runs, as one small file each in the user's state directory.
//! Later runs protect them even if they use other ones, so that the keys of caches stay secret, and
//! no tool changes the settings or the plugins of another run.

use crate::host::state_directories;
use crate::sandbox::has_settled;
use crate::workspace::{Obstacle, Reading, within};
use cap_std::fs::{Dir, OpenOptions};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The longest path that is read back, in bytes; no system supports a longer one.
const MAX_PATH: u64 = 4_200;
/// From this number of records on, a record is removed if its path and the parent directory are
/// gone. Tests and scripts use many paths for one run each.
const MANY: usize = 16;
/// From this number of records on, every record of a removed path is removed.
const TOO_MANY: usize = 128;
/// The most records, because every host scans all of them.
const MOST: usize = 512;

/// The time limit for scanning the recorded paths before one is added.
const PATIENCE: Duration = Duration::from_secs(1);

/// The kind of a recorded path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// A cache of compiled code, which tools may not even read.
    Cache,
    /// A configuration file of the user, which tools may not even read.
    Settings,
    /// A file beside a configuration file that decides about plugins, such as their approvals or
    /// their grants. Tools may not even read it.
    Decisions,
    /// A directory of plugins, which tools may not change.
    Plugins,
    /// A journal of calls, which tools may not even read.
    Journal,
    /// A directory of the tokens that servers make, which tools may not even read.
    Tokens,
}

impl Recorded {
    /// Returns whether tools may read the path.
    pub(super) fn reading(self) -> Reading {
        match self {
            Self::Cache | Self::Settings | Self::Decisions | Self::Journal | Self::Tokens => {
                Reading::Refused
            }
            Self::Plugins => Reading::Allowed,
        }
    }

    /// Returns the extension of the name of a record.
    fn extension(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Settings => "settings",
            Self::Decisions => "decisions",
            Self::Plugins => "plugins",
            Self::Journal => "journal",
            Self::Tokens => "tokens",
        }
    }

    /// Returns the kind of a record. One without a known kind is read strictly.
    fn from_name(name: &Path) -> Self {
        let is_of = |kind: &Self| name.extension().is_some_and(|it| it == kind.extension());
        [Self::Settings, Self::Decisions, Self::Plugins, Self::Journal, Self::Tokens]
            .into_iter()
            .find(is_of)
            .unwrap_or(Self::Cache)
    }
}

/// One directory of records.
#[derive(Debug)]
pub(super) struct PathRecords {
    dir: PathBuf,
}

impl PathRecords {
    /// Returns the records of this process's user, one set per state directory.
    pub(super) fn for_user() -> Vec<Self> {
        let dirs =
            state_directories().into_iter().map(|state| state.join("palisade").join("paths"));
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

    /// Returns the recorded paths.
    pub(super) fn all(&self) -> Vec<(Recorded, PathBuf)> {
        let Ok(dir) = Dir::open_ambient_dir(&self.dir, cap_std::ambient_authority()) else {
            return Vec::new();
        };
        self.warn_if_unsafe();
        records(&dir).into_iter().map(|(name, path)| (Recorded::from_name(&name), path)).collect()
    }

    /// Records an absolute path.
    ///
    /// # Errors
    ///
    /// An error if the record cannot be written, or if another user could replace the directory of
    /// the records; `QuotaExceeded` if there are too many.
    pub(super) fn add(&self, what: Recorded, path: &Path) -> io::Result<()> {
        let path = std::path::absolute(path)?;
        let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
        let name = format!("{hash}.{}", what.extension());
        let dir = self.private()?;
        if read(&dir, Path::new(&name)).as_ref() == Some(&path) {
            return Ok(());
        }
        make_room(&dir, &self.dir)?;
        write(&dir, &name, path.as_os_str().as_bytes())
    }

    /// Opens the directory for writing, and creates it if it is missing.
    fn private(&self) -> Result<Dir, Obstacle> {
        use crate::workspace::{Missing, open_private};
        let (handle, _) = open_private(&self.dir, Missing::Made, None)?;
        Ok(Dir::from_std_file(File::from(handle)))
    }

    /// Warns if another user could remove records. The remaining ones still apply: each is known to
    /// be the user's own.
    fn warn_if_unsafe(&self) {
        use crate::workspace::{Missing, open_private};
        if let Err(Obstacle::Unsafe(why)) = open_private(&self.dir, Missing::Refused, None) {
            let dir = self.dir.display();
            tracing::warn!(
                "the paths that are remembered in `{dir}` may not be all that there are: {why}"
            );
        }
    }

    /// Returns a stamp that changes with the records, or `None` if there are none.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        Stamp::from_metadata(&fs::metadata(&self.dir).ok()?)
    }
}

/// Returns the name of each record of the user with its path.
fn records(dir: &Dir) -> Vec<(PathBuf, PathBuf)> {
    let names =
        dir.entries().into_iter().flatten().flatten().map(|entry| PathBuf::from(entry.file_name()));
    names.filter_map(|name| read(dir, &name).map(|path| (name, path))).collect()
}

/// Removes obsolete records if there are many.
fn make_room(dir: &Dir, shown: &Path) -> io::Result<()> {
    let records = records(dir);
    if records.len() < MANY {
        return Ok(());
    }
    // A path on a file system that hangs keeps all records.
    let count = records.len();
    let obsolete = within(PATIENCE, move || obsolete(records)).unwrap_or_default();
    let removed = obsolete.iter().filter(|name| dir.remove_file(name).is_ok()).count();
    if count - removed < MOST {
        return Ok(());
    }
    let shown = shown.display();
    let why = format!(
        "{MOST} paths are remembered in `{shown}`; remove those that are not used, and their records"
    );
    Err(io::Error::new(ErrorKind::QuotaExceeded, why))
}

/// Returns the names of the records that are obsolete.
fn obsolete(records: Vec<(PathBuf, PathBuf)>) -> Vec<PathBuf> {
    let is_gone = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    let are_too_many = records.len() >= TOO_MANY;
    let is_obsolete = |path: &Path| {
        if are_too_many { is_gone(path) } else { path.parent().is_some_and(is_gone) }
    };
    records.into_iter().filter(|(_, path)| is_obsolete(path)).map(|(name, _)| name).collect()
}

/// The state of a directory, which changes when an entry is added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    object: (u64, u64),
    changed: SystemTime,
}

impl Stamp {
    fn from_metadata(meta: &fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let nanoseconds = u32::try_from(meta.ctime_nsec()).ok()?;
        let since = Duration::new(u64::try_from(meta.ctime()).ok()?, nanoseconds);
        let changed = SystemTime::UNIX_EPOCH.checked_add(since)?;
        Some(Self { object: (meta.dev(), meta.ino()), changed })
    }

    /// Returns true if a later change would produce another stamp, given the clock's granularity.
    pub(super) fn is_settled(&self) -> bool {
        has_settled(self.changed, SystemTime::now())
    }
}

/// Writes a record atomically.
fn write(dir: &Dir, name: &str, content: &[u8]) -> io::Result<()> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let draft = format!(".tmp{:016x}", u64::from_ne_bytes(random));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = dir.open_with(&draft, &options)?;
    // The record must be on disk before the key of a cache is.
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| dir.rename(&draft, dir, name));
    if let Err(error) = written {
        let _ = dir.remove_file(&draft);
        return Err(error);
    }
    dir.try_clone()?.into_std_file().sync_all()?;
    Ok(())
}

/// Returns the path of a record, if the user wrote it.
fn read(dir: &Dir, name: &Path) -> Option<PathBuf> {
    let file = open(dir, name).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_PATH).read_to_end(&mut bytes).ok()?;
    let path = PathBuf::from(from_bytes(bytes)?);
    path.is_absolute().then_some(path)
}

/// Opens a record. Refuses a file that another user owns or can change.
fn open(dir: &Dir, name: &Path) -> io::Result<File> {
    use crate::workspace::{LastLink, open_regular_at};
    use std::os::unix::fs::MetadataExt as _;
    let file = open_regular_at(dir, name, LastLink::Keep)?;
    let meta = file.metadata()?;
    let is_own = meta.uid() == rustix::process::geteuid().as_raw();
    if is_own && meta.mode() & 0o022 == 0 {
        Ok(file)
    } else {
        Err(ErrorKind::PermissionDenied.into())
    }
}

fn from_bytes(bytes: Vec<u8>) -> Option<OsString> {
    (!bytes.contains(&0)).then(|| OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests;
