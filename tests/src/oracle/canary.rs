//! What lies beside a workspace: the same afterwards, and not even read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::world::{Snapshot, World};

/// Long ago, so that the kernel writes down every access, also where it only keeps the day's first.
const LONG_AGO: i64 = 1_000_000_000;

/// The tree beside a workspace, as it was.
pub(super) struct Canary {
    outside: Snapshot,
    watched: Vec<PathBuf>,
}

impl Canary {
    /// The one of a world, from now on.
    pub(super) fn beside(world: &World) -> Self {
        let outside = world.outside();
        let mut watched = vec![world.outer().join("secret.txt"), world.outer().join("outside")];
        watched.extend(below(&world.outer().join("outside")));
        watched.iter().for_each(|path| unread(path));
        Self { outside, watched }
    }

    /// What was done to it.
    pub(super) fn touched(&self, world: &World) -> Vec<String> {
        // Who read comes first: comparing reads it all.
        let read = self.watched.iter().filter(|path| was_read(path));
        let mut touched: Vec<String> = read.map(|path| format!("{} was read", path.display())).collect();
        let now = world.outside();
        if now != self.outside {
            touched.push(format!("what lies beside the workspace has changed: {:?} is now {now:?}", self.outside));
        }
        touched
    }
}

/// Whether this machine writes down who reads what.
pub(super) fn can_be_seen(world: &World) -> bool {
    let file = world.outer().join("secret.txt");
    unread(&file);
    let _ = fs::read(&file);
    was_read(&file)
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { [below(&path), vec![path]].concat() } else { vec![path] }).collect()
}

fn unread(path: &Path) {
    let keep = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let times = Timestamps { last_access: Timespec { tv_sec: LONG_AGO, tv_nsec: 0 }, last_modification: keep };
    let set = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    set.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn was_read(path: &Path) -> bool {
    // One that is gone is told by the comparison.
    path.symlink_metadata().is_ok_and(|meta| meta.atime() != LONG_AGO)
}
