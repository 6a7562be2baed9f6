//! Opens regular files and directories, and nothing else, without blocking.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FileType, Mode as Permissions, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, OpenFlags, PathFlags,
};

use super::attributes::number;
use super::entries::to_change;
use super::locate::{Follow, Located, look};
#[cfg(target_os = "linux")]
use super::locate::{Stopped, open_beneath};
use super::mount::{OpenDir, Resolver};
use super::node::Node;
use super::permissions;
use super::walk::walk;
use crate::Access;
use crate::errors::{Fault, Refusal};
use crate::fd_budget::HeldFd;
use crate::file::{Mode, OpenFile};
use crate::inspect::{Inspected, LastLink, QUIETLY};
use crate::path::{self, GuestPath};
use crate::protected_paths::Identity;
#[cfg(target_os = "linux")]
use crate::protected_paths::PIN_ANY;
use crate::usage::Usage;

/// The number of attempts of an open that races with the creation or removal of its file.
const ATTEMPTS: usize = 4;

/// The options of an open, as the guest asked for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    mode: Mode,
    create: Create,
    truncate: bool,
    directory: bool,
    follow: Follow,
}

/// The treatment of missing and of existing files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Create {
    Never,
    IfMissing,
    Always,
}

impl Wish {
    /// Converts the flags of `open-at`. `mutate-directory` is ignored: every operation on a
    /// directory checks the access of the mount itself.
    pub(super) fn new(
        path: PathFlags,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Self, Fault> {
        let sync = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        // As wasmtime-wasi, which does not support these flags either.
        if flags.intersects(sync) {
            return Err(ErrorCode::Unsupported.into());
        }
        let effects = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        if open.contains(OpenFlags::DIRECTORY) && open.intersects(effects) {
            return Err(ErrorCode::Invalid.into());
        }
        Ok(Self {
            mode: mode(open, flags),
            create: create(open),
            truncate: open.contains(OpenFlags::TRUNCATE),
            directory: open.contains(OpenFlags::DIRECTORY),
            follow: Follow::from(path),
        })
    }

    /// Returns whether this open needs a writable mount.
    pub(super) fn changes(&self) -> bool {
        self.mode.writes() || self.create != Create::Never
    }
}

/// Opens the file or directory at a path. The caller has checked the access of the mount.
pub(super) fn open(
    dir: &OpenDir,
    path: &str,
    wish: Wish,
    access: Access,
    usage: &Usage,
) -> Result<Node, Fault> {
    let fd = HeldFd::take(usage)?;
    if wish.changes() {
        return open_to_change(dir, &to_change(path, usage)?, wish, usage, fd);
    }
    let path = GuestPath::parse(path)?;
    let (opened, name) = open_to_read(dir, &path, wish, usage)?;
    let name = || name.unwrap_or_else(|| path::join(dir.name(), path.whole));
    if opened.is_directory() {
        return Ok(Node::Dir(Arc::new(dir.below(opened.handle, name(), fd))));
    }
    // Only changes need the name, and a read-only mount has none.
    let name = match access {
        Access::ReadOnly => None,
        Access::ReadWrite => Some(name()),
    };
    Ok(counted(file(opened, wish.mode, name), fd))
}

/// An open handle and the metadata from the type check before the open.
struct Opened {
    handle: OwnedFd,
    stat: Stat,
}

impl Opened {
    fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::Directory
    }

    /// Opens a file after its type check. Refuses everything except regular files and directories.
    fn from_seen(
        seen: Inspected,
        dir: &OpenDir,
        flags: OFlags,
        by_name: impl FnOnce(OFlags) -> Result<OwnedFd, Fault>,
    ) -> Result<Self, Fault> {
        let stat = *seen.stat();
        match seen.file_type() {
            FileType::RegularFile | FileType::Directory => {}
            FileType::Symlink => return Err(ErrorCode::Loop.into()),
            _ => return Err(Refusal::SpecialFile.into()),
        }
        // Checked before the open on Linux, where an `O_PATH` handle can tell: opening some kernel
        // files has effects already.
        #[cfg(target_os = "linux")]
        {
            dir.device().check(seen.handle(), &stat)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                return Ok(Self { handle: seen.into_handle(), stat });
            }
            Ok(Self { handle: seen.open(dir.opener(), flags, by_name)?, stat })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let handle = seen.open(dir.opener(), flags, by_name)?;
            dir.device().check(&handle, &stat)?;
            Ok(Self { handle, stat })
        }
    }
}

fn counted(file: OpenFile, fd: HeldFd) -> Node {
    Node::File(Arc::new(file.counted(fd)))
}

fn mode(open: OpenFlags, flags: DescriptorFlags) -> Mode {
    let write = flags.contains(DescriptorFlags::WRITE) || open.contains(OpenFlags::TRUNCATE);
    match (flags.contains(DescriptorFlags::READ), write) {
        (true, true) => Mode::ReadWrite,
        (false, true) => Mode::Write,
        (_, false) => Mode::Read,
    }
}

fn create(open: OpenFlags) -> Create {
    if !open.contains(OpenFlags::CREATE) {
        Create::Never
    } else if open.contains(OpenFlags::EXCLUSIVE) {
        Create::Always
    } else {
        Create::IfMissing
    }
}

fn access_flags(mode: Mode) -> OFlags {
    let access = match mode {
        Mode::Read => OFlags::RDONLY,
        Mode::Write => OFlags::WRONLY,
        Mode::ReadWrite => OFlags::RDWR,
    };
    access | QUIETLY
}

/// Opens for reading, in two steps if the path holds no symbolic link. Returns the real name if it
/// may differ from the written path.
fn open_to_read(
    dir: &OpenDir,
    path: &GuestPath<'_>,
    wish: Wish,
    usage: &Usage,
) -> Result<(Opened, Option<String>), Fault> {
    if usage.hides() || usage.filter().is_some() {
        return open_walked(dir, path, wish, usage);
    }
    match dir.resolver() {
        #[cfg(target_os = "linux")]
        Resolver::Kernel => open_plain(dir, path, wish, usage),
        Resolver::Walk => open_walked(dir, path, wish, usage),
    }
}

#[cfg(target_os = "linux")]
fn open_plain(
    dir: &OpenDir,
    path: &GuestPath<'_>,
    wish: Wish,
    usage: &Usage,
) -> Result<(Opened, Option<String>), Fault> {
    usage.protected()?.check_private(path.whole)?;
    let own = if wish.directory || path.slash { OFlags::DIRECTORY } else { OFlags::empty() };
    let seen = match open_beneath(dir, path.whole, PIN_ANY | own) {
        Ok(handle) => Inspected::from_handle(handle)?,
        Err(Stopped::Symlink) => return open_walked(dir, path, wish, usage),
        Err(stopped) => return Err(stopped.into()),
    };
    let again = |flags| open_beneath(dir, path.whole, flags).map_err(Fault::from);
    Ok((Opened::from_seen(seen, dir, access_flags(wish.mode) | own, again)?, None))
}

fn open_walked(
    dir: &OpenDir,
    path: &GuestPath<'_>,
    wish: Wish,
    usage: &Usage,
) -> Result<(Opened, Option<String>), Fault> {
    let follow = if path.slash { Follow::Yes } else { wish.follow };
    let place = walk(dir, path, follow, usage)?;
    let rules = usage.protected()?;
    rules.check_private(&place.real_name())?;
    if usage.hides() {
        rules.check_readable(place.handle(), OsStr::new(&*place.name))?;
    }
    if usage.filter().is_none() {
        return Ok((open_at(&place, wish, dir)?, Some(place.real_name())));
    }
    for _ in 0..ATTEMPTS {
        place.check_standing(place.stat()?.as_ref())?;
        let opened = open_at(&place, wish, dir)?;
        if place.still_permits(&opened.stat, usage)? {
            if !opened.is_directory() {
                usage.check_aliases(number(opened.stat.st_nlink).unwrap_or(u64::MAX))?;
            }
            return Ok((opened, Some(place.real_name())));
        }
    }
    Err(ErrorCode::Busy.into())
}

/// Opens or creates a regular file for writing. Checks the type before the open, since opening a
/// device or a pipe for writing may have effects.
fn open_to_change(
    dir: &OpenDir,
    path: &GuestPath<'_>,
    wish: Wish,
    usage: &Usage,
    fd: HeldFd,
) -> Result<Node, Fault> {
    let follow = if wish.create == Create::Always { Follow::No } else { wish.follow };
    for _ in 0..ATTEMPTS {
        let (place, found) = look(dir, path, follow, usage)?;
        let depth = place.check_change(usage)?;
        let opened = match found {
            Some(stat) => {
                check_changeable(&stat, wish)?;
                open_existing(&place, wish, dir, usage)
            }
            None => create_new((&place, depth), wish, usage),
        };
        match opened {
            Err(Fault::Os(error))
                if wish.create == Create::IfMissing && lost_race(&error, found.is_some()) => {}
            opened => return Ok(counted(opened?, fd)),
        }
    }
    Err(ErrorCode::Busy.into())
}

/// Returns whether the entry appeared or vanished between the look-up and the open.
fn lost_race(error: &io::Error, existed: bool) -> bool {
    error.kind() == if existed { io::ErrorKind::NotFound } else { io::ErrorKind::AlreadyExists }
}

fn check_changeable(stat: &Stat, wish: Wish) -> Result<(), Fault> {
    if wish.create == Create::Always {
        return Err(ErrorCode::Exist.into());
    }
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if wish.directory => Err(ErrorCode::NotDirectory.into()),
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(ErrorCode::IsDirectory.into()),
        FileType::Symlink => Err(ErrorCode::Loop.into()),
        _ => Err(Refusal::SpecialFile.into()),
    }
}

fn open_existing(
    place: &Located<'_>,
    wish: Wish,
    dir: &OpenDir,
    usage: &Usage,
) -> Result<OpenFile, Fault> {
    let opened = open_at(place, wish, dir)?;
    if opened.is_directory() {
        return Err(ErrorCode::IsDirectory.into());
    }
    // Check the opened file, not the earlier look-up: the entry may have been replaced in between.
    let stat = opened.stat;
    usage.protected()?.check_identity(Identity::from_stat(&stat))?;
    if !place.still_permits(&stat, usage)? {
        return Err(ErrorCode::Busy.into());
    }
    let names = number(stat.st_nlink).unwrap_or(u64::MAX);
    if wish.mode.writes() {
        usage.check_links(names)?;
    }
    if wish.mode.reads() {
        usage.check_aliases(names)?;
    }
    let file = file(opened, wish.mode, Some(place.real_name()));
    if wish.truncate && stat.st_size != 0 {
        file.set_size(usage, 0)?;
    }
    Ok(file)
}

fn create_new(
    (place, depth): (&Located<'_>, u64),
    wish: Wish,
    usage: &Usage,
) -> Result<OpenFile, Fault> {
    if wish.create == Create::Never {
        return Err(ErrorCode::NoEntry.into());
    }
    if place.slash || place.is_here() {
        return Err(ErrorCode::IsDirectory.into());
    }
    // `EXCL` does not follow a symbolic link either.
    let flags = access_flags(wish.mode) | OFlags::CREATE | OFlags::EXCL;
    usage.check_depth(depth)?;
    let _admission = place.admit(usage)?;
    usage.charge_entry()?;
    let made = permissions::create(place.handle(), &place.name, flags, usage);
    let handle = made.inspect_err(|_| usage.refund_entry())?;
    if usage.filter().is_some() && !place.still_permits(&fstat(&handle)?, usage)? {
        return Err(ErrorCode::Busy.into());
    }
    Ok(OpenFile::created(File::from(handle), wish.mode, &place.real_name(), usage))
}

/// Opens the entry of a place without following a link.
fn open_at(place: &Located<'_>, wish: Wish, dir: &OpenDir) -> Result<Opened, Fault> {
    let own = if wish.directory || place.slash { OFlags::DIRECTORY } else { OFlags::empty() };
    let seen = Inspected::at(place.handle(), &*place.name, LastLink::Keep)?;
    if !own.is_empty() && seen.file_type() != FileType::Directory {
        return Err(ErrorCode::NotDirectory.into());
    }
    let again = |flags| match openat(place.handle(), &*place.name, flags, Permissions::empty()) {
        Ok(handle) => Ok(handle),
        Err(Errno::LOOP | Errno::MLINK) => Err(ErrorCode::Loop.into()),
        Err(errno) => Err(errno.into()),
    };
    Opened::from_seen(seen, dir, access_flags(wish.mode) | own | OFlags::NOFOLLOW, again)
}

fn file(opened: Opened, mode: Mode, name: Option<String>) -> OpenFile {
    let size = u64::try_from(opened.stat.st_size).unwrap_or(0);
    OpenFile::new(File::from(opened.handle), mode, size, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_race_is_a_vanished_or_new_name() {
        let lost = |kind: io::ErrorKind, existed| lost_race(&kind.into(), existed);
        assert!(lost(io::ErrorKind::NotFound, true) && lost(io::ErrorKind::AlreadyExists, false));
        assert!(!lost(io::ErrorKind::NotFound, false) && !lost(io::ErrorKind::AlreadyExists, true));
        assert!(!lost(io::ErrorKind::PermissionDenied, true));
    }
}
