//! Opens files of the workspace after a check that they are regular.

use super::place::{Place, check_permitted, check_readable, parent_of};
use super::{FileError, HardLinks, ProtectedPaths, elided};
use crate::workspace::{Inspected, LastLink, Opener, QUIETLY, is_the_kernels};
use cap_std::fs::Dir;
use rustix::fs::{FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// The number of attempts of an open that races with the creation or removal of its file.
const ATTEMPTS: usize = 4;

/// Opens the file at a path, following links. The check for hidden trees uses the directory of
/// the open itself, not an earlier resolution.
pub(super) fn open_to_read(
    (root, rules): (&Dir, &ProtectedPaths),
    relative: &str,
    path: &str,
) -> Result<File, FileError> {
    let fail = |error| FileError::io("read", path, error);
    let real = root.canonicalize(relative).map_err(fail)?;
    let Some(name) = real.file_name() else {
        return Err(FileError::not_regular(path, "a directory"));
    };
    rules.check_private(&real.to_string_lossy()).map_err(|why| FileError::forbidden(path, why))?;
    let dir = parent_of(root, &real).map_err(fail)?;
    check_readable(rules, &dir, name).map_err(|why| FileError::forbidden(path, why))?;
    not_the_kernels(path, &dir)?;
    let permitted = || check_permitted(rules, &dir, name);
    permitted().map_err(|why| FileError::forbidden(path, why))?;
    let seen = Inspected::at(&dir, name, LastLink::Keep).map_err(|errno| fail(errno.into()))?;
    regular(path, seen.file_type())?;
    if rules.filter_anything() && seen.stat().st_nlink > 1 {
        match rules.hard_links() {
            HardLinks::Refuse => return Err(FileError::Aliased(elided(path, 256))),
            HardLinks::Allow => {}
        }
    }
    let file = open_seen(&seen, &dir, name, OFlags::RDONLY).map_err(fail)?;
    // A single file may be mounted there.
    not_the_kernels(path, &file)?;
    Ok(file)
}

/// Opens or creates the file of a place for appending.
pub(super) fn open_to_append(
    place: &Place,
    rules: &ProtectedPaths,
    path: &str,
) -> Result<File, FileError> {
    let fail = |error| FileError::io("append to", path, error);
    let flags = OFlags::WRONLY | OFlags::APPEND;
    for _ in 0..ATTEMPTS {
        let seen = match Inspected::at(&place.dir, &*place.name, LastLink::Keep) {
            Ok(seen) => seen,
            Err(Errno::NOENT) => {
                let _admission = place.admit(rules, path)?;
                let flags = flags | OFlags::CREATE | OFlags::EXCL | QUIETLY;
                match openat(&place.dir, &*place.name, flags, Mode::from_raw_mode(0o666)) {
                    Err(Errno::EXIST) => continue,
                    made => return made.map(File::from).map_err(|errno| fail(errno.into())),
                }
            }
            Err(errno) => return Err(fail(errno.into())),
        };
        regular(path, seen.file_type())?;
        if seen.stat().st_nlink > 1 {
            match rules.hard_links() {
                HardLinks::Refuse => return Err(FileError::HardLinked(elided(path, 256))),
                HardLinks::Allow => {}
            }
        }
        match open_seen(&seen, &place.dir, &place.name, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => {
                let file = opened.map_err(fail)?;
                not_the_kernels(path, &file)?;
                return Ok(file);
            }
        }
    }
    Err(fail(io::Error::other("it appears and vanishes all the time")))
}

fn open_seen(seen: &Inspected, dir: &Dir, name: &OsStr, flags: OFlags) -> io::Result<File> {
    let again = |flags| openat(dir, name, flags, Mode::empty());
    Ok(seen.open(Opener::best(), flags | QUIETLY | OFlags::NOFOLLOW, again)?.into())
}

/// Refuses a file or a directory on a file system of the kernel.
pub(super) fn not_the_kernels(path: &str, opened: impl AsFd) -> Result<(), FileError> {
    if is_the_kernels(opened) { Err(FileError::kernel(path)) } else { Ok(()) }
}

fn regular(path: &str, kind: FileType) -> Result<(), FileError> {
    match kind {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileError::not_regular(path, "a directory")),
        FileType::Symlink => {
            Err(FileError::not_regular(path, "a symbolic link that leads nowhere"))
        }
        _ => Err(FileError::not_regular(path, "a pipe, a device or a socket")),
    }
}
