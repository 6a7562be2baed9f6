//! The metadata of the plugin locations at one moment, taken without opening any plugin.

use crate::plugins::scan;
use crate::plugins::sources::Sources;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The age below which a file may change without a change of its timestamps, because of their
/// granularity.
const SETTLED: Duration = Duration::from_secs(2);

/// The metadata of all plugin directories and files.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// `None` for a directory that cannot be listed.
    directories: Vec<Option<Inode>>,
    /// `None` for a file that cannot be inspected.
    files: Vec<(PathBuf, Option<FileStat>)>,
    /// True if a file is so young that it may change without a change of its metadata.
    is_fresh: bool,
}

/// The metadata that show a change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStat {
    length: u64,
    modified: Option<SystemTime>,
    changed: (i64, i64),
    inode: Inode,
}

/// A device with an inode number.
type Inode = (u64, u64);

impl Snapshot {
    /// Takes a snapshot of these locations, and of the files that hold the approvals.
    pub(super) fn take(sources: &Sources, approvals: &[PathBuf]) -> Self {
        let mut directories = Vec::new();
        let mut paths = Vec::new();
        for directory in scan::directories(sources) {
            let listed = scan::files(directory).ok();
            let meta = listed.as_ref().and_then(|_| fs::metadata(directory).ok());
            directories.push(meta.map(|meta| inode(&meta)));
            paths.extend(listed.unwrap_or_default());
        }
        paths.extend(sources.single_files().map(Path::to_owned));
        paths.extend_from_slice(approvals);
        Self { directories, ..Self::of_files(&paths) }
    }

    /// Takes a snapshot of these files alone.
    pub(super) fn of_files(paths: &[PathBuf]) -> Self {
        let files: Vec<_> = paths.iter().map(|path| (stat(path), path.clone())).collect();
        let now = SystemTime::now();
        let is_fresh = files.iter().any(|(stat, _)| stat.is_some_and(|stat| stat.is_young(now)));
        let files = files.into_iter().map(|(stat, path)| (path, stat)).collect();
        Self { directories: Vec::new(), files, is_fresh }
    }

    /// Returns true if a file may have changed between this snapshot and `later`. A change without
    /// a change of metadata is covered once, when all files have settled.
    pub(super) fn may_differ(&self, later: &Self) -> bool {
        self != later || (self.is_fresh && !later.is_fresh)
    }
}

/// Compares the metadata; the age of a file is not a change.
impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        self.directories == other.directories && self.files == other.files
    }
}

impl FileStat {
    fn is_young(&self, now: SystemTime) -> bool {
        let age = self.modified.and_then(|modified| now.duration_since(modified).ok());
        age.is_some_and(|age| age < SETTLED)
    }
}

fn stat(path: &Path) -> Option<FileStat> {
    let meta = fs::metadata(path).ok()?;
    Some(FileStat {
        length: meta.len(),
        modified: meta.modified().ok(),
        changed: changed(&meta),
        inode: inode(&meta),
    })
}

#[cfg(unix)]
fn inode(meta: &Metadata) -> Inode {
    use std::os::unix::fs::MetadataExt as _;
    (meta.dev(), meta.ino())
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Inode {
    (0, 0)
}

#[cfg(unix)]
fn changed(meta: &Metadata) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    (meta.ctime(), meta.ctime_nsec())
}

#[cfg(not(unix))]
fn changed(_: &Metadata) -> (i64, i64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn young_file_may_differ_once_after_settling() {
        let snapshot = |is_fresh| Snapshot { directories: Vec::new(), files: Vec::new(), is_fresh };
        assert!(snapshot(true).may_differ(&snapshot(false)));
        assert!(!snapshot(true).may_differ(&snapshot(true)));
        assert!(!snapshot(false).may_differ(&snapshot(true)));
        assert!(!snapshot(false).may_differ(&snapshot(false)));
    }

    #[test]
    fn file_is_young_for_two_seconds() {
        let now = SystemTime::now();
        let stat = |modified| FileStat { length: 0, modified, changed: (0, 0), inode: (0, 0) };
        let written = |age: u64| stat(now.checked_sub(Duration::from_millis(age)));
        assert!(written(0).is_young(now) && written(1999).is_young(now));
        assert!(!written(2000).is_young(now) && !stat(None).is_young(now));
    }
}
