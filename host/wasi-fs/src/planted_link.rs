//! The rule of Linux for symbolic links in directories that every user can write to, such as `/tmp`
//! (`fs.protected_symlinks` in proc_sys_fs(5)). The kernel applies it where it follows a link, and
//! not where a program reads a link and goes to its target.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, RawMode, fstat, statat};
use rustix::process::geteuid;

/// The bits of a sticky directory that every user can write to.
const SHARED: RawMode = 0o1002;

/// Returns true if another user may have made a link so that this user goes to its target: it lies
/// in a shared directory, and belongs neither to this user nor to the owner of the directory.
///
/// # Errors
///
/// If the directory or the link cannot be looked at.
pub fn may_be_planted(dir: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<bool> {
    let around = fstat(dir)?;
    if around.st_mode & SHARED != SHARED {
        return Ok(false);
    }
    let owner = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid;
    Ok(owner != geteuid().as_raw() && owner != around.st_uid)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;
    use std::fs;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    /// Only root can give a link to another user.
    #[test]
    fn link_of_another_user_in_a_shared_directory_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (own, other) = (directory.path().join("own"), directory.path().join("other"));
        symlink("target", &own).unwrap();
        symlink("target", &other).unwrap();
        let is_root = lchown(&other, Some(12_345), None).is_ok();
        for (mode, planted) in [(0o1777, is_root), (0o777, false), (0o1755, false)] {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            let dir = fs::File::open(directory.path()).unwrap();
            let judge = |name: &str| may_be_planted(dir.as_fd(), OsStr::new(name));
            assert_eq!((judge("own"), judge("other")), (Ok(false), Ok(planted)), "{mode:o}");
        }
    }
}
