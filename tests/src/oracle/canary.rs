//! The canary: files beside a workspace, which must be neither changed nor read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::world::{Snapshot, World};

/// An access time long ago, so that the kernel records every access. With `relatime`, it updates an
/// access time only if that is a day old or precedes the last change.
const LONG_AGO: i64 = 1_000_000_000;

/// The files beside a workspace in their initial state.
pub(super) struct Canary {
    outside: Snapshot,
    watched: Vec<PathBuf>,
}

impl Canary {
    /// Records the files beside a world's workspace, and resets their access times.
    pub(super) fn beside(world: &World) -> Self {
        let outside = world.outside();
        let mut watched = vec![world.outer().join("secret.txt"), world.outer().join("outside")];
        watched.extend(below(&world.outer().join("outside")));
        watched.iter().for_each(|path| unread(path));
        Self { outside, watched }
    }

    /// Returns a complaint for each read and for any change since the start.
    pub(super) fn touched(&self, world: &World) -> Vec<String> {
        // Check the access times first: the comparison reads all files.
        let read = self.watched.iter().filter(|path| was_read(path));
        let mut touched: Vec<String> =
            read.map(|path| format!("{} was read", path.display())).collect();
        let now = world.outside();
        if now != self.outside {
            touched.push(format!(
                "what lies beside the workspace has changed: {:?} is now {now:?}",
                self.outside
            ));
        }
        touched
    }
}

/// Returns true if the file system records access times.
pub(super) fn can_be_seen(world: &World) -> bool {
    let file = world.outer().join("secret.txt");
    unread(&file);
    let _ = fs::read(&file);
    was_read(&file)
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(
            |path| if path.is_dir() { [below(&path), vec![path]].concat() } else { vec![path] },
        )
        .collect()
}

fn unread(path: &Path) {
    let keep = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let times = Timestamps {
        last_access: Timespec { tv_sec: LONG_AGO, tv_nsec: 0 },
        last_modification: keep,
    };
    let set = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    set.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn was_read(path: &Path) -> bool {
    // A file that was removed is reported by the comparison.
    path.symlink_metadata().is_ok_and(|meta| meta.atime() != LONG_AGO)
}
