//! Reads files whose type and size others decide: those of a project, and plugins of strangers.

use palisade::internal::open_regular;
use palisade::workspace::LastLink;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Reads a file of at most this many bytes. A pipe or a device is not opened, since it may block
/// and has no end.
///
/// # Errors
///
/// If the file cannot be read, is not regular, or is larger.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(path, LastLink::Follow)?;
    if file.take(most.saturating_add(1)).read_to_end(&mut bytes)? as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Reads a text as [`read`] does.
///
/// # Errors
///
/// As [`read`], and if the file is not UTF-8.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Writes a file beside its place and renames it: the place never has a part of it, and a link at
/// the place is replaced, not followed. The directory is one of the project, which a hostile
/// project could link to another place.
///
/// # Errors
///
/// If the directory is a link, or the file cannot be written. Nothing is left beside the place
/// then.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if directory.is_some_and(Path::is_symlink) {
        return Err(io::Error::other("its directory is a symbolic link, which is not followed"));
    }
    // As a new file of the user, and not as a private one.
    let mut beside = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory.unwrap_or(Path::new(".")))?;
    beside.write_all(bytes)?;
    beside.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    #[test]
    fn pipe_device_and_larger_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, file] = ["pipe", "file"].map(|name| folder.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        fs::write(&file, "four").unwrap();
        assert!(read(&pipe, 4).is_err() && read(Path::new("/dev/zero"), 4).is_err());
        assert_eq!(read(&file, 4).unwrap(), b"four");
        assert!(read(&file, 3).unwrap_err().to_string().contains("more than 3 bytes"));
    }

    #[test]
    fn link_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [outside, place] = ["outside", "place"].map(|name| folder.path().join(name));
        fs::write(&outside, "old").unwrap();
        std::os::unix::fs::symlink(&outside, &place).unwrap();
        replace(&place, b"new").unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"old");
        assert_eq!(fs::read(&place).unwrap(), b"new");
        assert!(replace(&folder.path().join("none/file"), b"x").is_err());
        std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
        assert!(replace(&folder.path().join("link/file"), b"x").is_err());
    }
}
