//! The permissions of new files. Guests can neither see nor set permissions, and they replace files
//! by renaming others: a private file must not become readable by others on the way, nor a program
//! lose its executable bit.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat, fchmod, fstat, openat, unlinkat};

use super::attributes::number;
use super::locate::Located;
use crate::access_list::{FormerPermissions, take_permissions};
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
    let default = fstat(&made)?.st_mode & 0o777;
    let handle = match is_temporary(name) {
        false => made,
        true => {
            // The system alone knows the permissions of a new file: they follow from the umask and
            // the access list of the directory. The empty file that has shown them is removed, so
            // that nobody holds it open when the contents are written.
            unlinkat(dir, name, AtFlags::empty())?;
            openat(dir, name, flags, PRIVATE)?
        }
    };
    usage.new_files().add(NewFile::new(&handle, default)?);
    Ok(handle)
}

/// A file with the permissions for the name that it is about to get.
#[derive(Default)]
pub(super) struct Settled {
    /// The file and its earlier permissions, if they may have changed.
    changed: Option<(File, RawMode)>,
    /// The state of a new file that is about to get its final name.
    named: Option<Stat>,
}

impl Settled {
    /// Ends the state of a new file: it has its name, and is a file like any other.
    pub(super) fn keep(self, usage: &Usage) {
        if let Some(stat) = self.named {
            usage.new_files().forget(&stat);
        }
    }

    /// Takes the permissions back: the file keeps its old name.
    pub(super) fn undo(self) {
        if let Some((file, own)) = self.changed {
            // Best effort: the caller gets the error of the renaming.
            let _ = set(&file, own);
        }
    }
}

/// Gives a file that is about to be renamed the permissions and the access list of the file that it
/// replaces, or the permissions of any new file. A file that the call has not created gets no
/// permission that it does not have.
pub(super) fn settle(
    old: &Located<'_>,
    (new, replaced): (&Located<'_>, Option<&Stat>),
    usage: &Usage,
) -> Result<Settled, Fault> {
    let Some(seen) = old.stat()?.filter(is_regular) else { return Ok(Settled::default()) };
    let made = usage.new_files().find(&seen);
    let replaced = replaced.filter(|it| is_regular(it));
    if made.is_none() && replaced.is_none_or(|it| permissions_without_gain(&seen, it).is_none()) {
        return Ok(Settled::default());
    }
    let file = open_regular_at(old.handle(), Path::new(&*old.name), LastLink::Keep)?;
    let stat = fstat(&file)?;
    // The permissions are those of the file under each of its names.
    usage.check_links(number(stat.st_nlink).unwrap_or(u64::MAX))?;
    let made = made.filter(|made| made.is((file.as_fd(), ""), &stat));
    match (&made, replaced) {
        (Some(_), Some(replaced)) => {
            let place = (new.handle(), OsStr::new(&*new.name));
            take_permissions(file.as_fd(), former(replaced), place)?;
        }
        (Some(made), None) if !is_temporary(&new.name) => set(&file, made.default)?,
        (None, Some(replaced)) => {
            permissions_without_gain(&stat, replaced).map_or(Ok(()), |mode| set(&file, mode))?;
        }
        (_, None) => {}
    }
    let named = made.filter(|_| !is_temporary(&new.name)).map(|_| stat);
    Ok(Settled { changed: Some((file, stat.st_mode & 0o7777)), named })
}

/// Returns the permissions that a file has in common with the one that it replaces, unless they are
/// its own.
fn permissions_without_gain(file: &Stat, replaced: &Stat) -> Option<RawMode> {
    let own = file.st_mode & 0o7777;
    Some(former(replaced).for_group(file.st_gid) & own).filter(|settled| *settled != own)
}

fn former(replaced: &Stat) -> FormerPermissions {
    FormerPermissions { mode: replaced.st_mode, group: replaced.st_gid }
}

fn set(file: &File, mode: RawMode) -> rustix::io::Result<()> {
    fchmod(file, Mode::from_raw_mode(mode))
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
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
