//! The permissions of a file that replaces another one, with its access list (POSIX ACL): rights of
//! single users and groups beside those of the permission bits, whose group part is then the mask of
//! the list.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, RawMode, XattrFlags, fchmod, fremovexattr, fsetxattr, fstat, lgetxattr};
use rustix::io::Errno;

/// The attribute with the list of a file.
const ACCESS: &str = "system.posix_acl_access";
/// The longest attribute of Linux, in bytes (`XATTR_SIZE_MAX`).
const LONGEST: usize = 64 << 10;

/// The permissions of a file that is about to be replaced.
#[derive(Debug, Clone, Copy)]
pub struct FormerPermissions {
    /// The permission bits. Bits beyond them are ignored.
    pub mode: RawMode,
    /// The number of the file's group.
    pub group: u32,
}

impl FormerPermissions {
    /// Returns the permission bits for a file of this group that replaces the former one: neither
    /// setuid nor setgid, since the owners may differ. If the groups differ, the members of either
    /// may be among all other users, so that both get the rights that both had.
    pub(crate) fn for_group(self, group: u32) -> RawMode {
        let mode = self.mode & 0o777;
        let both = (mode >> 3) & mode & 0o007;
        if group == self.group { mode } else { (mode & 0o700) | (both << 3) | both }
    }
}

/// Gives a new file the permissions and the access list of the entry under a name, which it is about
/// to replace, as far as that opens it to no other user.
///
/// # Errors
///
/// If the permissions cannot be set.
pub fn take_permissions(
    file: BorrowedFd<'_>,
    former: FormerPermissions,
    place: (BorrowedFd<'_>, &OsStr),
) -> rustix::io::Result<()> {
    let mode = former.for_group(fstat(file)?.st_gid);
    let mode = match keep_access_list(file, place) {
        AccessList::Kept => mode,
        AccessList::Lost => mode & 0o700,
    };
    fchmod(file, Mode::from_raw_mode(mode))
}

/// Whether a file has the access list of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccessList {
    /// It has the same list, or none if the other file has none.
    Kept,
    /// The list cannot be read or written. Without it, the permission bits of the group are those
    /// of its mask.
    Lost,
}

/// Gives a file the access list of the entry under a name, in place of the one that it has from its
/// directory.
fn keep_access_list(file: BorrowedFd<'_>, (dir, name): (BorrowedFd<'_>, &OsStr)) -> AccessList {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_group_has_no_right_that_one_of_both_lacked() {
        for (mode, same, other) in [
            (0o100_644, 0o644, 0o644),
            (0o100_640, 0o640, 0o600),
            (0o100_604, 0o604, 0o600),
            (0o104_775, 0o775, 0o755),
            (0o100_647, 0o647, 0o644),
        ] {
            let former = FormerPermissions { mode, group: 1 };
            assert_eq!((former.for_group(1), former.for_group(2)), (same, other), "{mode:o}");
        }
    }
}
