//! Opening a file that may be anything: a pipe, a device, a link to somewhere else.

use super::LastLink;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a regular file for reading. Never waits: a pipe without a writer would hold the process for good.
///
/// # Errors
///
/// Where it cannot be opened, is not a regular file, or is a symbolic link and `last` says not to follow one.
pub(crate) fn open_regular(path: &Path, last: LastLink) -> io::Result<File> {
    if last == LastLink::Keep && path.symlink_metadata()?.is_symlink() {
        return Err(io::Error::other("it is a symbolic link, which is not followed here"));
    }
    let file = open(path, last)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

#[cfg(unix)]
fn open(path: &Path, last: LastLink) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let own = if last == LastLink::Keep { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | own;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path, _: LastLink) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    #[test]
    fn a_pipe_is_refused_at_once_and_a_link_only_where_asked() {
        let dir = tempfile::tempdir().unwrap();
        let (file, pipe, link) = (dir.path().join("file"), dir.path().join("pipe"), dir.path().join("link"));
        std::fs::write(&file, "x").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_regular(&file, LastLink::Keep).is_ok());
        assert!(open_regular(&pipe, LastLink::Follow).is_err());
        assert!(open_regular(dir.path(), LastLink::Follow).is_err());
        assert!(open_regular(&link, LastLink::Follow).is_ok());
        assert!(open_regular(&link, LastLink::Keep).is_err());
    }
}
