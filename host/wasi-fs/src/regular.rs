//! Opens files of unknown type, which may be pipes, devices or links.

use super::inspect::LastLink;
use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a regular file for reading, without blocking. Never opens a pipe or a device, since the
/// open alone has side effects.
///
/// # Errors
///
/// Fails if the file cannot be opened, is not regular, or is a symbolic link and `last` forbids to
/// follow it.
pub fn open_regular(path: &Path, last: LastLink) -> io::Result<File> {
    open_regular_at(rustix::fs::CWD, path, last)
}

/// Opens a regular file as [`open_regular`], by a path relative to an open directory.
///
/// # Errors
///
/// As [`open_regular`].
pub fn open_regular_at(
    dir: impl std::os::fd::AsFd,
    path: &Path,
    last: LastLink,
) -> io::Result<File> {
    use super::inspect::{Inspected, Opener, QUIETLY};
    use rustix::fs::{FileType, Mode, OFlags, openat};
    use rustix::io::retry_on_intr;
    let seen = Inspected::at(&dir, path, last)?;
    match seen.file_type() {
        FileType::RegularFile => {}
        FileType::Symlink => {
            return Err(io::Error::other("it is a symbolic link, which is not followed here"));
        }
        _ => return Err(io::Error::other("it is not a regular file")),
    }
    let own = if last == LastLink::Keep { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = OFlags::RDONLY | QUIETLY | own;
    Ok(seen
        .open(Opener::best(), flags, |flags| {
            retry_on_intr(|| openat(&dir, path, flags, Mode::empty()))
        })?
        .into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    #[test]
    fn pipe_is_refused_and_link_followed_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let pipe = dir.path().join("pipe");
        let link = dir.path().join("link");
        std::fs::write(&file, "x").unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_regular(&file, LastLink::Keep).is_ok());
        assert!(open_regular(&pipe, LastLink::Follow).is_err());
        assert!(open_regular(dir.path(), LastLink::Follow).is_err());
        assert!(open_regular(&link, LastLink::Follow).is_ok());
        let refused = open_regular(&link, LastLink::Keep).unwrap_err();
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
    }
}
