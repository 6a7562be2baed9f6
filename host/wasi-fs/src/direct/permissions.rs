//! The permissions of new files. Guests can neither see nor set permissions, and they replace files
//! by renaming others: a private file must not become readable by others on the way, nor a program
//! lose its executable bit.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat, fchmod, fstat, openat, unlinkat};

use super::locate::Located;
use crate::access_list::{AccessList, keep_access_list};
use crate::errors::Fault;
use crate::inspect::LastLink;
use crate::new_files::NewFile;
use crate::regular::open_regular_at;
use crate::usage::Usage;

/// The permissions that ordinary programs ask for. The user's umask restricts them.
const DEFAULT: Mode = Mode::from_raw_mode(0o666);
/// The permissions of a file that only its owner may read.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// Returns whether a name is one of a temporary file, of the host or of a guest that replaces files
/// in the same way: `.palisade-`, sixteen hexadecimal digits, `.tmp`.
pub fn is_temporary(name: &str) -> bool {
    let digits = name.strip_prefix(".palisade-").and_then(|name| name.strip_suffix(".tmp"));
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Creates a file, which must not exist. A temporary file is private until it gets another name: it
/// may hold the contents of a private file that it will replace.
pub(super) fn create(
    dir: BorrowedFd<'_>,
    name: &str,
    flags: OFlags,
    usage: &Usage,
) -> rustix::io::Result<OwnedFd> {
    let made = openat(dir, name, flags, DEFAULT)?;
    let stat = fstat(&made)?;
    let default = stat.st_mode & 0o777;
    let (handle, stat) = match is_temporary(name) {
        false => (made, stat),
        true => {
            // The system alone knows the permissions of a new file: they follow from the umask and
            // the access list of the directory. The empty file that has shown them is removed, so
            // that nobody holds it open when the contents are written.
            unlinkat(dir, name, AtFlags::empty())?;
            let private = openat(dir, name, flags, PRIVATE)?;
            let stat = fstat(&private)?;
            (private, stat)
        }
    };
    usage.note_new_file(NewFile::new(&stat, default));
    Ok(handle)
}

/// Gives a file that is about to be renamed the permissions and the access list of the file that it
/// replaces, or the permissions of any new file. A file that the call has not created gets no
/// permission that it does not have.
pub(super) fn settle(
    old: &Located<'_>,
    (new, replaced): (&Located<'_>, Option<&Stat>),
    usage: &Usage,
) -> Result<(), Fault> {
    let Some(stat) = old.stat()?.filter(is_regular) else { return Ok(()) };
    let own = stat.st_mode & 0o7777;
    let (default, replaced) =
        (usage.default_of_new_file(&stat), replaced.filter(|it| is_regular(it)));
    let settled = match (default, replaced) {
        (Some(_), Some(replaced)) => permissions_for(&stat, replaced),
        (Some(default), None) if !is_temporary(&new.name) => default,
        (None, Some(replaced)) => permissions_for(&stat, replaced) & own,
        (_, None) => own,
    };
    let takes_list = default.is_some() && replaced.is_some();
    if settled == own && !takes_list {
        return Ok(());
    }
    let file = open_regular_at(old.handle(), Path::new(&*old.name), LastLink::Keep)?;
    let list = || keep_access_list(file.as_fd(), (new.handle(), OsStr::new(&*new.name)));
    let settled = match takes_list.then(list) {
        Some(AccessList::Lost) => settled & 0o700,
        Some(AccessList::Kept) | None => settled,
    };
    fchmod(&file, Mode::from_raw_mode(settled))?;
    Ok(())
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Returns the permission bits for a file that replaces another one: neither setuid nor setgid,
/// since the owners may differ, and none for another group than those of all users.
fn permissions_for(file: &Stat, replaced: &Stat) -> RawMode {
    let mode = replaced.st_mode & 0o777;
    match file.st_gid == replaced.st_gid {
        true => mode,
        false => (mode & 0o707) | (mode & 0o070 & ((mode & 0o007) << 3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_form_is_the_name_of_a_temporary_file() {
        for digits in ["0123456789abcdef", "0123456789ABCDEF"] {
            assert!(is_temporary(&format!(".palisade-{digits}.tmp")), "{digits}");
        }
        for other in [
            ".palisade-0123456789abcde.tmp",
            ".palisade-0123456789abcdeg.tmp",
            ".palisade-0123456789abcdef0.tmp",
            ".palisade-0123456789abcdef.txt",
            "palisade-0123456789abcdef.tmp",
            ".palisade-.tmp",
        ] {
            assert!(!is_temporary(other), "{other}");
        }
    }
}
