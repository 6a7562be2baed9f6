//! One entry of the cache: its content, followed by an authentication code over name and content.

use super::private::{Key, PrivateDir};
use super::usage::note_use;
use std::fs::File;
use std::io::{self, Read, Seek as _};

/// The length of an authentication code, in bytes.
const TAG: usize = 32;
/// The largest entry that is read, in bytes. A Python plugin compiles to 34 MB.
const MAX_ENTRY: u64 = 512 << 20;
/// The size of one read, in bytes: large enough for the hash to use the widest registers, and small
/// enough to stay in the CPU cache.
const PIECE: usize = 128 << 10;

/// An entry, present or absent.
pub(super) struct Entry<'a> {
    pub(super) dir: &'a PrivateDir,
    pub(super) name: String,
    pub(super) key: &'a Key,
}

impl Entry<'_> {
    /// Returns true if a file of this name exists.
    pub(super) fn exists(&self) -> bool {
        self.dir.has_file(&self.name)
    }

    /// Reads the content and authenticates it.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let (mut file, size) = self.open()?;
        // The size is known in advance, so that one read suffices.
        let mut content = vec![0; usize::try_from(size).unwrap_or(0)];
        file.read_exact(&mut content)?;
        let tag = content.split_off(content.len().saturating_sub(TAG));
        self.check(self.hasher().update(&content), &tag)?;
        Ok(content)
    }

    /// Returns the open file after its content is authenticated. The authentication code is at its
    /// end.
    pub(super) fn checked_file(&self) -> io::Result<File> {
        let (mut file, size) = self.open()?;
        let mut hasher = self.hasher();
        let mut piece = vec![0; PIECE];
        let mut left = size.saturating_sub(TAG as u64);
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let read = piece.get_mut(..length).unwrap_or_default();
            file.read_exact(read)?;
            hasher.update(read);
            left -= length as u64;
        }
        let mut tag = [0; TAG];
        file.read_exact(&mut tag)?;
        self.check(&hasher, &tag)?;
        file.rewind()?;
        Ok(file)
    }

    /// Writes the entry atomically, in place of an older one.
    pub(super) fn write(&self, content: &[u8]) -> io::Result<()> {
        let tag = self.hasher().update(content).finalize();
        self.dir.put(&self.name, &[content, tag.as_bytes()])
    }

    /// Removes the entry, if it exists.
    pub(super) fn remove(&self) {
        self.dir.remove(&self.name);
    }

    fn open(&self) -> io::Result<(File, u64)> {
        let file = self.dir.file(&self.name)?;
        let meta = file.metadata()?;
        if meta.len() > MAX_ENTRY {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        note_use(&file, meta.modified());
        Ok((file, meta.len()))
    }

    /// Returns the hasher of this entry. The name is authenticated too, so that entries cannot be
    /// swapped.
    fn hasher(&self) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(self.key);
        hasher.update(self.name.as_bytes()).update(&[0]);
        hasher
    }

    fn check(&self, hasher: &blake3::Hasher, tag: &[u8]) -> io::Result<()> {
        // `blake3` compares hashes in constant time.
        let whole = <[u8; TAG]>::try_from(tag).is_ok_and(|tag| hasher.finalize() == tag);
        if whole { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}
