//! The depth of a tree that is to be moved.

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, openat, statat};
use std::ffi::CStr;
use std::os::fd::AsFd;

use super::locate::Located;
use crate::errors::Fault;
use crate::fd_budget::HeldFd;
use crate::inspect::READ_DIRECTORY;
use crate::usage::Usage;

/// Refuses to move a directory to a place of this depth if an entry of its tree would then lie
/// deeper than the quota. Each entry is charged as a listed one, and each directory that is open at
/// the same time as an open file.
pub(super) fn check_tree(moved: &Located<'_>, depth: u64, usage: &Usage) -> Result<(), Fault> {
    let mut levels = vec![Level::open(moved.handle(), &*moved.name, usage)?];
    let mut below = depth;
    while let Some(level) = levels.last_mut() {
        let Some(entry) = level.next(usage)? else {
            levels.pop();
            below = below.saturating_sub(1);
            continue;
        };
        usage.check_depth(below.saturating_add(1))?;
        if level.is_directory(&entry)? {
            let next = Level::open(level.entries.fd()?, entry.file_name(), usage)?;
            levels.push(next);
            below = below.saturating_add(1);
        }
    }
    Ok(())
}

/// A directory of the walk, and the position in it.
struct Level {
    entries: Dir,
    _fd: HeldFd,
}

impl Level {
    fn open(dir: impl AsFd, name: impl rustix::path::Arg, usage: &Usage) -> Result<Self, Fault> {
        let fd = HeldFd::take(usage)?;
        let handle = openat(dir, name, READ_DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self { entries: Dir::new(handle)?, _fd: fd })
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
