//! Re-checks the path of an open file before a change: the handle outlives the path checked at
//! open.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, fstat, openat, statat};

use super::errors::{Fault, Refusal};
use super::usage::Usage;
use crate::path_rules::Standing;
use crate::protected_paths::PIN;

/// The last checked path of an open file.
#[derive(Default)]
pub(super) struct FdLocation {
    checked: Mutex<Option<PathBuf>>,
}

impl FdLocation {
    /// Creates the state of a file whose path has just been checked.
    pub(super) fn checked(file: &File) -> Self {
        Self { checked: Mutex::new(current(file)) }
    }

    /// Checks the path again if the file has moved. If the system cannot report the path, the
    /// check at open stands.
    pub(super) fn check(&self, file: &File, usage: &Usage) -> Result<(), Fault> {
        // Ignore lock poisoning: the path is replaced as a whole.
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(now) = current(file) else { return Ok(()) };
        if checked.as_ref() == Some(&now) {
            return Ok(());
        }
        let stat = fstat(file)?;
        if stat.st_nlink == 0 {
            // The file is unlinked, so only this call can reach it.
            return Ok(());
        }
        let (Some(parent), Some(name)) = (now.parent(), now.file_name()) else {
            return Err(Refusal::Moved.into());
        };
        // The path is only a hint: the file may have moved again since. Compare identities.
        let dir = pin(parent).map_err(|_| Refusal::Moved)?;
        let found = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| Refusal::Moved)?;
        if (found.st_dev, found.st_ino) != (stat.st_dev, stat.st_ino) {
            return Err(Refusal::Moved.into());
        }
        let rules = usage.protected()?;
        rules.check_entry(dir.as_fd(), name)?;
        if rules.standing_at(dir.as_fd(), name)? != Standing::Permitted {
            return Err(Refusal::Excluded("the open file".into()).into());
        }
        *checked = Some(now);
        Ok(())
    }
}

fn pin(path: &Path) -> io::Result<std::os::fd::OwnedFd> {
    Ok(openat(rustix::fs::CWD, path, PIN, Mode::empty())?)
}

/// Returns the present path of an open file or directory, if the system can tell.
#[cfg(target_os = "linux")]
pub(super) fn current(file: impl AsFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd as _;
    let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new()).ok()?;
    Some(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

#[cfg(target_vendor = "apple")]
pub(super) fn current(file: impl AsFd) -> Option<PathBuf> {
    let path = rustix::fs::getpath(file).ok()?;
    Some(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn current(_: impl AsFd) -> Option<PathBuf> {
    None
}
