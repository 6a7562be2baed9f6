//! The access list (POSIX ACL) of a file: rights of single users and groups beside those of the
//! permission bits, whose group part is then the mask of the list.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, lgetxattr};
use rustix::io::Errno;

/// The attribute with the list of a file.
const ACCESS: &str = "system.posix_acl_access";
/// The longest attribute of Linux, in bytes (`XATTR_SIZE_MAX`).
const LONGEST: usize = 64 << 10;

/// Whether a file has the access list of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessList {
    /// It has the same list, or none if the other file has none.
    Kept,
    /// The list cannot be read or written. Without it, the permission bits of the group are those
    /// of its mask.
    Lost,
}

/// Gives a file the access list of the entry under a name, in place of the one that it has from its
/// directory.
pub fn keep_access_list(file: BorrowedFd<'_>, (dir, name): (BorrowedFd<'_>, &OsStr)) -> AccessList {
    // The attributes of an entry that may not be opened have no other way to be read.
    let path = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
    let mut list = Vec::with_capacity(LONGEST);
    let kept = match lgetxattr(&path, ACCESS, spare_capacity(&mut list)) {
        Ok(_) => fsetxattr(file, ACCESS, &list, XattrFlags::empty()),
        Err(Errno::NODATA) => match fremovexattr(file, ACCESS) {
            Err(Errno::NODATA) => Ok(()),
            removed => removed,
        },
        // The file system has no lists.
        Err(Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(errno),
    };
    match kept {
        Ok(()) => AccessList::Kept,
        Err(_) => AccessList::Lost,
    }
}
