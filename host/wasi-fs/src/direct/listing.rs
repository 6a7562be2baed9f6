//! Directory listings, read on demand and never buffered whole.

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, openat, statat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry};

use super::mount::OpenDir;
use super::pace::Pace;
use crate::errors::{Fault, Refusal};
use crate::fd_budget::HeldFd;
use crate::inspect::READ_DIRECTORY;
use crate::path::HERE;
use crate::path_rules::{Standing, joined};
use crate::protected_paths::ProtectedPaths;
use crate::protected_paths::names::shown;
use crate::usage::Usage;

/// A listing in progress: one file descriptor and a buffer of some ten kilobytes at most.
pub(super) struct Listing {
    entries: Dir,
    /// The place of the directory, relative to the mount, if there are path rules.
    place: Option<String>,
    _fd: HeldFd,
}

impl Listing {
    /// Opens the directory again: a listing needs its own cursor, and the mount's handle may be
    /// `O_PATH`.
    pub(super) fn open(dir: &OpenDir, usage: &Usage) -> Result<Self, Fault> {
        let fd = HeldFd::take(usage)?;
        let place = usage.filter().map(|rules| place(dir, rules)).transpose()?;
        let handle = openat(dir.handle(), HERE, READ_DIRECTORY, Mode::empty())?;
        Ok(Self { entries: Dir::new(handle)?, place, _fd: fd })
    }

    /// Returns the next entry, or none at the end. Skips `.`, `..`, the entries that the path rules
    /// deny, and names that are not UTF-8: a guest cannot address those, and an error would make
    /// wasi-libc end the listing and hide all later entries.
    pub(super) async fn next(&mut self, usage: &Usage) -> Result<Option<DirectoryEntry>, Fault> {
        let mut pace = Pace::default();
        while let Some(entry) = self.entries.read() {
            let entry = entry?;
            pace.step().await;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            // Skipped names are charged as well: reading them costs the same.
            usage.charge_listed()?;
            if let Ok(name) = entry.file_name().to_str() {
                let type_ = self.type_of(&entry)?;
                if !self.permits(name, type_, usage) {
                    continue;
                }
                return Ok(Some(DirectoryEntry { type_, name: name.to_owned() }));
            }
        }
        Ok(None)
    }

    /// Returns whether the path rules permit an entry.
    fn permits(&self, name: &str, type_: DescriptorType, usage: &Usage) -> bool {
        let (Some(place), Some(rules)) = (&self.place, usage.filter()) else { return true };
        match rules.standing_of(&joined(place, name)) {
            Standing::Permitted => true,
            Standing::Way => type_ == DescriptorType::Directory,
            Standing::Denied => false,
        }
    }

    /// Returns the type of an entry. Most file systems deliver it with the name; on others it takes
    /// a `stat`.
    fn type_of(&self, entry: &DirEntry) -> Result<DescriptorType, Fault> {
        let known = entry.file_type();
        if known != FileType::Unknown {
            return Ok(descriptor_type(known));
        }
        match statat(self.entries.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(descriptor_type(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(DescriptorType::Unknown),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Returns the place of a directory to list. Refuses one that was moved to a denied place.
fn place(dir: &OpenDir, rules: &ProtectedPaths) -> Result<String, Fault> {
    let place = rules.place(dir.handle())?;
    let permitted = place.filter(|place| rules.standing_of(place) != Standing::Denied);
    Ok(permitted.ok_or_else(|| Refusal::Excluded(shown(dir.name()).into()))?)
}

/// Converts a file type to its WASI counterpart.
pub(super) fn descriptor_type(file_type: FileType) -> DescriptorType {
    match file_type {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}
