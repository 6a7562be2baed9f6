//! Files and directories that only their owner can access.

use palisade::internal::{Missing, open_private_directory};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The most names of files that are read in a directory.
const MAX_NAMES: usize = 1_000;

/// Returns the token directory below a base directory.
pub(super) fn folder(base: &Path) -> PathBuf {
    base.join("palisade").join("tokens")
}

/// Checks that no other user can read or replace the content of a file. The open handle is checked,
/// which avoids a TOCTOU race: the content is read from the same handle.
pub(super) fn check(file: &File, path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = file.metadata().map_err(|error| error.to_string())?;
    let owner = meta.uid();
    let mode = meta.mode() & 0o7777;
    if owner != rustix::process::geteuid().as_raw() && owner != 0 {
        return Err(format!(
            "it belongs to another user ({owner}), who can change it; make one of your own"
        ));
    }
    if mode & 0o077 != 0 {
        let path = path.display();
        return Err(format!(
            "others can read or change it (mode {mode:03o}); `chmod 600 {path}` makes it private"
        ));
    }
    Ok(())
}

/// Returns true if the path is a directory that no other user can access.
pub(super) fn is_private(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
        && File::open(path).is_ok_and(|dir| check(&dir, path).is_ok())
}

/// A directory that no other user can access. It is held open, so that all operations apply to the
/// directory that was checked.
pub(super) struct Directory {
    handle: std::os::fd::OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens the token directory below a base directory, and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// An error if another user can reach the directory, or can replace it or one of its parents.
    pub(super) fn make(base: &Path) -> io::Result<Self> {
        Self::open(folder(base), Missing::Made)
    }

    /// Opens the token directory below a base directory, if it exists.
    ///
    /// # Errors
    ///
    /// As [`make`](Self::make).
    pub(super) fn existing(base: &Path) -> io::Result<Self> {
        Self::open(folder(base), Missing::Refused)
    }

    fn open(path: PathBuf, missing: Missing) -> io::Result<Self> {
        let handle = open_private_directory(&path, missing)
            .map_err(|why| io::Error::other(format!("`{}`: {why}", path.display())))?;
        // Tools are denied the directory by its path, which a link could lead elsewhere.
        if path.symlink_metadata()?.is_symlink() {
            return Err(io::Error::other(format!("`{}` is a symbolic link", path.display())));
        }
        Ok(Self { handle, path })
    }

    /// Opens the file of this name for reading, with its path.
    pub(super) fn file(&self, name: &str) -> io::Result<(File, PathBuf)> {
        use palisade::internal::open_regular_at;
        use palisade::workspace::LastLink;
        Ok((open_regular_at(&self.handle, Path::new(name), LastLink::Keep)?, self.path.join(name)))
    }

    /// Returns the names of its files, at most [`MAX_NAMES`] of them.
    pub(super) fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.path).into_iter().flatten().take(MAX_NAMES);
        files.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect()
    }

    /// Writes a file atomically and replaces an earlier one.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<Written> {
        use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, renameat, unlinkat};
        let new = format!("{name}.{}", std::process::id());
        let remove = || unlinkat(&self.handle, &new, AtFlags::empty());
        // Left over from a killed process with the same process ID.
        let _ = remove();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.handle, &new, flags, Mode::RUSR | Mode::WUSR)?);
        // Locked before the rename: a token file without a lock counts as stale.
        hold(&file);
        let written = file.write_all(format!("{text}\n").as_bytes());
        let named = written.and_then(|()| Ok(renameat(&self.handle, &new, &self.handle, name)?));
        if let Err(error) = named {
            let _ = remove();
            return Err(error);
        }
        let stat = fstat(&file)?;
        Ok(Written { path: self.path.join(name), object: (stat.st_dev, stat.st_ino), _held: file })
    }

    /// Removes the file of this name, if it exists.
    pub(super) fn discard(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.handle, name, rustix::fs::AtFlags::empty());
    }

    /// Removes a written file, unless another file has replaced it.
    pub(super) fn remove(&self, written: &Written) {
        use rustix::fs::{AtFlags, statat, unlinkat};
        let Some(name) = written.path.file_name() else { return };
        let now = statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW);
        if now.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == written.object) {
            let _ = unlinkat(&self.handle, name, AtFlags::empty());
        }
    }
}

/// Locks a file to mark it as that of a live process: the kernel releases the lock when the process
/// ends.
fn hold(file: &File) {
    // Best effort: on a file system without locks the file counts as held.
    let _ = file.try_lock();
}

/// Returns true if the process that wrote a file is alive.
pub(super) fn is_held(file: &File) -> bool {
    file.try_lock_shared().is_err()
}

/// A file that was written.
pub(super) struct Written {
    pub(super) path: PathBuf,
    /// Keeps the lock for as long as the server runs.
    _held: File,
    object: (u64, u64),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn token_file_is_private_and_removed_with_its_server() {
        let base = tempfile::tempdir().unwrap();
        let directory = Directory::make(&base.path().join("new")).unwrap();
        let first = directory.write("a.token", "first").unwrap();
        let path = first.path.clone();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let second = directory.write("a.token", "second").unwrap();
        directory.remove(&first);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "second\n",
            "the later server's token stays"
        );
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "nothing else is left"
        );
        directory.remove(&second);
        assert!(!path.exists());
    }

    #[test]
    fn shared_or_linked_token_directory_is_refused() {
        let base = tempfile::tempdir().unwrap();
        drop(Directory::make(base.path()).unwrap());
        let folder = folder(base.path());
        for open in [0o701, 0o710, 0o722, 0o1777] {
            set_permissions(&folder, Permissions::from_mode(open)).unwrap();
            assert!(Directory::make(base.path()).is_err(), "{open:o}");
        }
        std::fs::remove_dir(&folder).unwrap();
        symlink(base.path(), &folder).unwrap();
        assert!(Directory::make(base.path()).is_err());
    }

    #[test]
    fn replaceable_token_directory_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let open = base.path().join("open");
        std::fs::create_dir(&open).unwrap();
        set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        let why = Directory::make(&open).err().unwrap().to_string();
        assert!(why.contains("other users can write to") && why.contains("chmod go-w"), "{why}");
        assert_eq!(std::fs::read_dir(&open).unwrap().count(), 0);
        set_permissions(&open, Permissions::from_mode(0o700)).unwrap();
        let kept = Directory::make(&open).unwrap().write("a.token", "text").unwrap();
        assert!(Directory::existing(&open).unwrap().file("a.token").is_ok());
        set_permissions(&open, Permissions::from_mode(0o770)).unwrap();
        assert!(
            Directory::existing(&open).is_err(),
            "a client takes no token from there: {}",
            kept.path.display()
        );
        // Only root can change the owner of a file.
        set_permissions(&open, Permissions::from_mode(0o700)).unwrap();
        if std::os::unix::fs::chown(&open, Some(65_534), None).is_ok() {
            assert!(
                Directory::make(&open)
                    .err()
                    .unwrap()
                    .to_string()
                    .contains("belongs to another user")
            );
        }
    }

    #[test]
    fn shared_token_file_is_refused_with_remedy() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let judged = |mode| {
            set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            check(file.as_file(), file.path())
        };
        for private in [0o600, 0o400, 0o700] {
            assert_eq!(judged(private), Ok(()), "{private:o}");
        }
        for open in [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o666] {
            let why = judged(open).unwrap_err();
            assert!(why.contains(&format!("`chmod 600 {}`", file.path().display())), "{why}");
        }
    }

    #[test]
    fn file_of_another_user_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // Only root can change the owner of a file.
        if std::os::unix::fs::chown(file.path(), Some(65_534), None).is_ok() {
            assert!(
                check(file.as_file(), file.path()).unwrap_err().contains("another user (65534)")
            );
        }
    }
}
