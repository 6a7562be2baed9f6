//! The folder of installed plugins beside a lock. A file has its digest in its name, and the lock
//! says which of them are installed. So every step but the replacement of the lock leaves the
//! installed plugins as they are, and the next change removes what an interrupted one has left.

use crate::fetch::Fetched;
use crate::limits;
use crate::plugin_name::PluginName;
use palisade::internal::{Missing, open_private_directory, open_regular};
use palisade::tool::Digest;
use palisade::tool::text::visible;
use palisade::workspace::LastLink;
use palisade_trust::{Lock, installed_file, installed_folder, signature_file};
use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempDir};

/// The beginning of the names of folders in which plugins are looked at.
const STAGED: &str = ".new-";

/// The folder of installed plugins, held against changes by other processes.
#[derive(Debug)]
pub struct InstallFolder {
    path: PathBuf,
    held: File,
}

/// A plugin that was written, and is not installed.
#[derive(Debug)]
pub struct Staged {
    folder: TempDir,
    file: String,
}

/// The reason why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The folder cannot be used.
    #[error("cannot use the folder of installed plugins `{}`: {reason}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error, with the remedy if there is one.
        reason: io::Error,
    },
    /// The folder is a symbolic link.
    #[error(
        "the folder of installed plugins `{}` is a symbolic link, which is not followed: what it leads to could be exchanged; put a folder in its place",
        path.display()
    )]
    Link {
        /// The folder.
        path: PathBuf,
    },
    /// Another process changes the folder.
    #[error("another `palisade` adds, updates or removes a plugin; try again when it has ended")]
    Busy,
}

impl InstallFolder {
    /// Opens the folder beside a lock, and makes it if it is missing. Until this is dropped, no
    /// other process can open it.
    ///
    /// # Errors
    ///
    /// [`InstallError`] if it is a link, if other users can reach or replace it, or if another
    /// process holds it.
    pub fn open(lock: &Path) -> Result<Self, InstallError> {
        let path = installed_folder(lock);
        if path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return Err(InstallError::Link { path });
        }
        let opened = open_private_directory(&path, Missing::Made);
        let failed = |reason| InstallError::Folder { path: path.clone(), reason };
        let held = File::from(opened.map_err(failed)?);
        match held.try_lock() {
            Ok(()) => Ok(Self { path, held }),
            Err(TryLockError::WouldBlock) => Err(InstallError::Busy),
            Err(TryLockError::Error(reason)) => Err(failed(reason)),
        }
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a plugin into a folder of its own, in which it can be looked at. Dropping the result
    /// removes it.
    ///
    /// # Errors
    ///
    /// [`InstallError::Folder`] if it cannot be written.
    pub fn stage(&self, name: &PluginName, fetched: &Fetched) -> Result<Staged, InstallError> {
        let staged = || -> io::Result<Staged> {
            let folder = tempfile::Builder::new().prefix(STAGED).tempdir_in(&self.path)?;
            let file = installed_file(name.as_str(), fetched.digest);
            let path = folder.path().join(&file);
            write(&path, &fetched.bytes)?;
            if let Some(signature) = &fetched.signature {
                write(&signature_file(&path), signature.as_bytes())?;
            }
            Ok(Staged { folder, file })
        };
        staged().map_err(|reason| self.failed(reason))
    }

    /// Moves a plugin to its place. It is installed once the lock names its digest.
    ///
    /// # Errors
    ///
    /// [`InstallError::Folder`] if it cannot be moved. Nothing is installed then.
    pub fn place(&self, staged: &Staged) -> Result<PathBuf, InstallError> {
        let (from, to) = (staged.file(), self.path.join(&staged.file));
        let moved = || -> io::Result<()> {
            match fs::rename(signature_file(&from), signature_file(&to)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
            fs::rename(&from, &to)?;
            // The lock must not name a file that a crash of the machine has taken back.
            File::open(&self.path)?.sync_all()
        };
        moved().map_err(|reason| self.failed(reason))?;
        Ok(to)
    }

    /// Returns true if the bytes of an installed plugin are there, as its digest says.
    #[must_use]
    pub fn has(&self, name: &str, digest: Digest) -> bool {
        let file = open_regular(&self.path.join(installed_file(name, digest)), LastLink::Keep);
        let mut bytes = Vec::new();
        let read = file.and_then(|file| file.take(limits::PLUGIN).read_to_end(&mut bytes));
        read.is_ok() && Digest::of(&bytes) == digest
    }

    /// Returns true if there is a file in the place of an installed plugin, with any bytes.
    #[must_use]
    pub fn has_any(&self, name: &str, digest: Digest) -> bool {
        self.path.join(installed_file(name, digest)).symlink_metadata().is_ok()
    }

    /// Removes the file of a plugin and its signature, if they are there.
    ///
    /// # Errors
    ///
    /// [`InstallError::Folder`] if a file cannot be removed.
    pub fn remove(&self, name: &str, digest: Digest) -> Result<(), InstallError> {
        let file = self.path.join(installed_file(name, digest));
        for path in [signature_file(&file), file] {
            match fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(|reason| self.failed(reason))?,
            }
        }
        Ok(())
    }

    /// Removes the files that no entry of the lock names, and what interrupted changes have left.
    /// Files under other names are not touched.
    ///
    /// # Errors
    ///
    /// [`InstallError::Folder`] if a file cannot be removed.
    pub fn clean(&self, lock: &Lock) -> Result<(), InstallError> {
        let kept: HashSet<PathBuf> = lock
            .installed()
            .map(|entry| self.path.join(installed_file(&entry.name, entry.digest)))
            .flat_map(|file| [signature_file(&file), file])
            .collect();
        let cleaned = || -> io::Result<()> {
            for entry in fs::read_dir(&self.path)? {
                let (path, name) = entry.map(|it| (it.path(), it.file_name()))?;
                let name = name.to_string_lossy().into_owned();
                if name.starts_with(STAGED) {
                    fs::remove_dir_all(&path)?;
                } else if is_own(&name) && !kept.contains(&path) {
                    fs::remove_file(&path)?;
                }
            }
            self.held.sync_all()
        };
        cleaned().map_err(|reason| self.failed(reason))
    }

    fn failed(&self, reason: io::Error) -> InstallError {
        InstallError::Folder { path: self.path.clone(), reason }
    }
}

impl Staged {
    /// Returns the folder, which has this plugin alone.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the plugin's file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.folder.path().join(&self.file)
    }
}

/// Returns true for the name of a file that this module has written: `NAME@DIGEST.wasm`, or that of
/// its signature.
fn is_own(file: &str) -> bool {
    let plugin = file.strip_suffix(".minisig").unwrap_or(file);
    let Some(stem) = plugin.strip_suffix(".wasm") else { return false };
    visible(stem) == stem && palisade::plugins::name_of_file(Path::new(plugin)) != stem
}

/// Writes a new file that only this user can read and change, to the disk.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut fresh = NamedTempFile::new_in(folder)?;
    fresh.write_all(bytes)?;
    fresh.as_file().sync_all()?;
    fresh.persist_noclobber(path).map(drop).map_err(|error| error.error)
}
