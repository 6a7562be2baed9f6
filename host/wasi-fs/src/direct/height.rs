//! The checks of a tree that is to be moved: its depth, and path rules about its entries.

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, openat, statat};
use std::ffi::CStr;
use std::os::fd::AsFd;

use super::locate::Located;
use super::pace::Pace;
use crate::errors::{Fault, Refusal};
use crate::fd_budget::HeldFd;
use crate::inspect::READ_DIRECTORY;
use crate::path_rules::{Standing, joined};
use crate::protected_paths::ProtectedPaths;
use crate::protected_paths::names::shown;
use crate::usage::Usage;

/// Refuses to move a directory to a place of this depth if an entry of its tree would then lie
/// deeper than the quota, or if the path rules deny an entry before or after the move: the move
/// would bring it to light, or hide it. Each entry is charged as a listed one, and each directory
/// that is open at the same time as an open file. The check yields to the host every few entries,
/// so that a tree of any size delays no other call, and nothing moves after the end of the call.
pub(super) async fn check_tree(
    moved: &Located<'_>,
    (target, depth): (&Located<'_>, u64),
    usage: &Usage,
) -> Result<(), Fault> {
    let rules = usage.filter().filter(|_| usage.denies_paths());
    let places = rules.map(|rules| Places::new(rules, moved, target)).transpose()?;
    let mut levels = vec![Level::open(moved.handle(), &*moved.name, String::new(), usage)?];
    let mut below = depth;
    let mut pace = Pace::default();
    while let Some(level) = levels.last_mut() {
        pace.step().await;
        let Some(entry) = level.next(usage)? else {
            levels.pop();
            below = below.saturating_sub(1);
            continue;
        };
        usage.check_depth(below.saturating_add(1))?;
        let is_directory = level.is_directory(&entry)?;
        let way = match &places {
            None => String::new(),
            Some(places) => places.check(level, &entry, is_directory)?,
        };
        if is_directory {
            let next = Level::open(level.entries.fd()?, entry.file_name(), way, usage)?;
            levels.push(next);
            below = below.saturating_add(1);
        }
    }
    Ok(())
}

/// The places of a tree before and after its move, relative to the mount.
struct Places<'a> {
    rules: &'a ProtectedPaths,
    from: String,
    to: String,
    /// The name of the tree that the guest knows.
    label: String,
}

impl<'a> Places<'a> {
    fn new(
        rules: &'a ProtectedPaths,
        moved: &Located<'_>,
        target: &Located<'_>,
    ) -> Result<Self, Fault> {
        let label = moved.real_name();
        let place = |located: &Located<'_>| -> Result<String, Fault> {
            let dir = rules.place(located.handle())?;
            let dir = dir.ok_or_else(|| Refusal::Excluded(shown(&label).into()))?;
            Ok(joined(&dir, &located.name).into_owned())
        };
        let (from, to) = (place(moved)?, place(target)?);
        Ok(Self { rules, from, to, label })
    }

    /// Judges an entry, and returns its path within the tree. The refusal names the tree and not
    /// the entry, which the guest does not see.
    fn check(&self, level: &Level, entry: &DirEntry, is_dir: bool) -> Result<String, Fault> {
        let permits = |standing: Standing| match standing {
            Standing::Permitted => true,
            Standing::Way => is_dir,
            Standing::Denied => false,
        };
        let way = entry.file_name().to_str().ok().map(|name| joined(&level.way, name).into_owned());
        let is_permitted = |way: &String| {
            let mut places = [&self.from, &self.to].into_iter();
            places.all(|place| permits(self.rules.standing_of(&joined(place, way))))
        };
        let refused = || Refusal::Excluded(shown(&self.label).into());
        Ok(way.filter(is_permitted).ok_or_else(refused)?)
    }
}

/// A directory of the walk, and the position in it.
struct Level {
    entries: Dir,
    /// The path of the directory within the tree, if there are path rules.
    way: String,
    _fd: HeldFd,
}

impl Level {
    fn open(
        dir: impl AsFd,
        name: impl rustix::path::Arg,
        way: String,
        usage: &Usage,
    ) -> Result<Self, Fault> {
        let fd = HeldFd::take(usage)?;
        let handle = openat(dir, name, READ_DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self { entries: Dir::new(handle)?, way, _fd: fd })
    }

    fn next(&mut self, usage: &Usage) -> Result<Option<DirEntry>, Fault> {
        let is_own = |name: &CStr| matches!(name.to_bytes(), b"." | b"..");
        while let Some(entry) = self.entries.read() {
            let entry = entry?;
            if !is_own(entry.file_name()) {
                usage.charge_listed()?;
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Returns whether an entry is a directory. Some file systems do not tell it with the name.
    fn is_directory(&self, entry: &DirEntry) -> Result<bool, Fault> {
        let file_type = match entry.file_type() {
            FileType::Unknown => {
                let stat =
                    statat(self.entries.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            known => known,
        };
        Ok(file_type == FileType::Directory)
    }
}
