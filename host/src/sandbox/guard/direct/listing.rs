//! Directory listings, read as the guest asks for them and never kept whole.

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, openat, statat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry};

use super::mount::OpenDir;
use crate::sandbox::guard::errors::Fault;
use crate::sandbox::guard::held::Held;
use crate::sandbox::guard::ledger::Ledger;
use crate::sandbox::guard::path::HERE;
use crate::workspace::READ_DIRECTORY;

/// A listing under way: one open directory and a buffer of at most some ten kilobytes.
pub(super) struct Listing {
    entries: Dir,
    _held: Held,
}

impl Listing {
    /// Opens the directory once more, because a listing has a cursor of its own, and the mount's handle may be good for resolving names only.
    pub(super) fn open(dir: &OpenDir, ledger: &Ledger) -> Result<Self, Fault> {
        let held = Held::one(ledger.files())?;
        let handle = openat(dir.handle(), HERE, READ_DIRECTORY, Mode::empty())?;
        Ok(Self { entries: Dir::new(handle)?, _held: held })
    }

    /// The next entry, or none at the end. `.` and `..` are left out, and so are names that are not UTF-8: a guest could not name them anyway, and
    /// an error would end the listing in wasi-libc, which would hide all entries after it.
    pub(super) fn next(&mut self, ledger: &Ledger) -> Result<Option<DirectoryEntry>, Fault> {
        while let Some(entry) = self.entries.read() {
            let entry = entry?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            ledger.charge_listed()?;
            if let Ok(name) = entry.file_name().to_str() {
                let type_ = self.type_of(&entry)?;
                return Ok(Some(DirectoryEntry { type_, name: name.to_owned() }));
            }
        }
        Ok(None)
    }

    /// Most file systems tell the type along with the name; the others are asked for it.
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

/// A type as WASI names it.
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
