//! Opening, which never waits and yields regular files and directories only.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FileType, Mode as Permissions, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

use super::attributes::number;
use super::entries::to_change;
use super::kernel::Device;
use super::locate::{Follow, Located, look};
#[cfg(target_os = "linux")]
use super::locate::{Stopped, open_beneath};
use super::mount::{OpenDir, Resolver};
use super::node::Node;
use super::walk::walk;
use crate::sandbox::guard::Access;
use crate::sandbox::guard::errors::{Fault, Refusal};
use crate::sandbox::guard::file::{Mode, OpenFile};
use crate::sandbox::guard::held::Held;
use crate::sandbox::guard::ledger::Ledger;
use crate::sandbox::guard::path::{self, GuestPath};
use crate::workspace::Identity;

/// Neither waits for a pipe's other end, nor becomes the owner of a terminal, nor is inherited by a program that the host starts.
const QUIETLY: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// How often an open starts over when the name appears or vanishes under it.
const ATTEMPTS: usize = 4;

/// What a guest wants to open, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    mode: Mode,
    create: Create,
    truncate: bool,
    directory: bool,
    follow: Follow,
}

/// What to do where there is no file yet, and where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Create {
    Never,
    IfMissing,
    Always,
}

impl Wish {
    /// Reads the flags of `open-at`. `mutate-directory` is not looked at: every operation on a directory checks the mount's access itself.
    pub(super) fn new(path: PathFlags, open: OpenFlags, flags: DescriptorFlags) -> Result<Self, Fault> {
        let sync = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
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

    /// Whether this needs a mount that may be written to.
    pub(super) fn changes(&self) -> bool {
        self.mode.writes() || self.create != Create::Never
    }
}

/// Opens what a path names. Whether the access allows it has been checked.
pub(super) fn open(dir: &OpenDir, path: &str, wish: Wish, access: Access, ledger: &Ledger) -> Result<Node, Fault> {
    let held = Held::one(ledger.files())?;
    if wish.changes() {
        return open_to_change(dir, &to_change(path, ledger)?, wish, ledger, held);
    }
    let path = GuestPath::parse(path)?;
    let (handle, name) = open_to_read(dir, &path, wish, ledger)?;
    let stat = check_type(&handle, dir.device())?;
    let name = || name.unwrap_or_else(|| path::join(dir.name(), path.whole));
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        return Ok(Node::Dir(Arc::new(dir.below(handle, name(), held))));
    }
    // Nothing can change through the handle where the mount is read-only, so nobody will ask for the name.
    let name = (access == Access::ReadWrite).then(name);
    Ok(counted(file(handle, &stat, wish.mode, name), held))
}

fn counted(file: OpenFile, held: Held) -> Node {
    Node::File(Arc::new(file.counted(held)))
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

/// Opens in one step where the path holds no symbolic link. The name is known where it differs from the path's letters.
fn open_to_read(
    dir: &OpenDir,
    path: &GuestPath<'_>,
    wish: Wish,
    ledger: &Ledger,
) -> Result<(OwnedFd, Option<String>), Fault> {
    let mut flags = access_flags(wish.mode);
    flags.set(OFlags::DIRECTORY, wish.directory || path.slash);
    if ledger.hides() {
        return open_walked(dir, path, wish, flags, ledger);
    }
    match dir.resolver() {
        #[cfg(target_os = "linux")]
        Resolver::Kernel => match open_beneath(dir, path.whole, flags) {
            Ok(handle) => Ok((handle, None)),
            Err(Stopped::Symlink) => open_walked(dir, path, wish, flags, ledger),
            Err(Stopped::Errno(errno)) => Err(unopened(errno)),
            Err(Stopped::Refused(refusal)) => Err(refusal.into()),
        },
        Resolver::Walk => open_walked(dir, path, wish, flags, ledger),
    }
}

fn open_walked(
    dir: &OpenDir,
    path: &GuestPath<'_>,
    wish: Wish,
    mut flags: OFlags,
    ledger: &Ledger,
) -> Result<(OwnedFd, Option<String>), Fault> {
    let follow = if path.slash { Follow::Yes } else { wish.follow };
    let place = walk(dir, path, follow)?;
    flags.set(OFlags::DIRECTORY, wish.directory || place.slash);
    if ledger.hides() {
        ledger.rules()?.check_readable(place.handle(), OsStr::new(&*place.name))?;
    }
    let handle = open_at(&place, flags)?;
    Ok((handle, Some(place.real_name())))
}

/// Opens or makes a regular file that may be changed. Looks before it opens, since opening a device or a pipe for writing may have effects already.
fn open_to_change(dir: &OpenDir, path: &GuestPath<'_>, wish: Wish, ledger: &Ledger, held: Held) -> Result<Node, Fault> {
    let follow = if wish.create == Create::Always { Follow::No } else { wish.follow };
    for _ in 0..ATTEMPTS {
        let (place, found) = look(dir, path, follow)?;
        place.check_change(ledger)?;
        let opened = match found {
            Some(stat) => {
                check_changeable(&stat, wish)?;
                open_existing(&place, wish, dir.device(), ledger)
            }
            None => create_new(&place, wish, ledger),
        };
        match opened {
            Err(Fault::Os(error)) if wish.create == Create::IfMissing && lost_race(&error, found.is_some()) => {}
            opened => return Ok(counted(opened?, held)),
        }
    }
    Err(ErrorCode::Busy.into())
}

/// Whether the name appeared or vanished after it was looked at.
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

fn open_existing(place: &Located<'_>, wish: Wish, device: Device, ledger: &Ledger) -> Result<OpenFile, Fault> {
    let handle = open_at(place, access_flags(wish.mode))?;
    let stat = check_type(&handle, device)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ErrorCode::IsDirectory.into());
    }
    // What counts is what was opened, not what was there before.
    ledger.rules()?.check_identity(Identity::from_stat(&stat))?;
    if wish.mode.writes() {
        ledger.check_links(number(stat.st_nlink).unwrap_or(u64::MAX))?;
    }
    let file = file(handle, &stat, wish.mode, Some(place.real_name()));
    if wish.truncate && stat.st_size != 0 {
        file.set_size(ledger, 0)?;
    }
    Ok(file)
}

fn create_new(place: &Located<'_>, wish: Wish, ledger: &Ledger) -> Result<OpenFile, Fault> {
    if wish.create == Create::Never {
        return Err(ErrorCode::NoEntry.into());
    }
    if place.slash || place.is_here() {
        return Err(ErrorCode::IsDirectory.into());
    }
    // `EXCL` does not follow a link either.
    let flags = access_flags(wish.mode) | OFlags::CREATE | OFlags::EXCL;
    // What any program creates: the user's umask decides about the rest.
    let permissions = Permissions::from_raw_mode(0o666);
    ledger.check_depth(&place.real_name())?;
    ledger.charge_entry()?;
    let made = openat(place.handle(), &*place.name, flags, permissions);
    let handle = made.inspect_err(|_| ledger.refund_entry())?;
    Ok(OpenFile::created(File::from(handle), wish.mode, place.real_name(), ledger))
}

fn open_at(place: &Located<'_>, flags: OFlags) -> Result<OwnedFd, Fault> {
    match openat(place.handle(), &*place.name, flags | OFlags::NOFOLLOW, Permissions::empty()) {
        Ok(handle) => Ok(handle),
        Err(Errno::LOOP | Errno::MLINK) => Err(ErrorCode::Loop.into()),
        Err(errno) => Err(unopened(errno)),
    }
}

/// What an open says of a socket, of a pipe without a reader and of a device without a driver.
fn unopened(errno: Errno) -> Fault {
    match errno {
        Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP => Refusal::SpecialFile.into(),
        errno => errno.into(),
    }
}

/// The check that counts: of what was opened, not of what was there before.
fn check_type(handle: &OwnedFd, device: Device) -> Result<Stat, Fault> {
    let stat = fstat(handle)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Directory => device.check(handle, &stat).map(|()| stat),
        _ => Err(Refusal::SpecialFile.into()),
    }
}

fn file(handle: OwnedFd, stat: &Stat, mode: Mode, name: Option<String>) -> OpenFile {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    OpenFile::new(File::from(handle), mode, size, name)
}
