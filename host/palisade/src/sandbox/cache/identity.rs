//! The identity of a file, as its file system reports it, so that large files are not hashed again
//! at each start.
//!
//! A replaced file has another inode number. A modified file has other times, of which only the
//! kernel sets the change time (ctime). Even if all this were forged, the plugin that runs would be
//! the one whose digest is in the result: the file that was at the path before.

use crate::tool::Digest;
use crate::workspace::FileStamp;
use cap_std::fs::Metadata;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::identities;

/// The coarsest timestamp granularity of a file system: 2 s.
const SETTLED: Duration = Duration::from_secs(2);

/// Returns true if a change after `seen` would show in the times of a file last changed at
/// `changed`. A file that has just been written may be written again within the same timestamp.
pub(crate) fn has_settled(changed: SystemTime, seen: SystemTime) -> bool {
    seen.duration_since(changed).is_ok_and(|age| age > SETTLED)
}

/// The identity of a file at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// The hash of the path. It names the cache entry, and has the same length for every path.
    path_hash: blake3::Hash,
    stamp: FileStamp,
    changed: SystemTime,
    seen: SystemTime,
}

#[derive(Serialize, Deserialize)]
struct CachedDigest {
    stamp: FileStamp,
    digest: String,
}

impl Identity {
    /// Returns the identity of an open file at this path, or `None` if its file system does not
    /// report changes reliably. Must be taken before the file is read, so that any later change
    /// shows.
    pub(crate) fn new(path: &Path, file: &File) -> Option<Self> {
        if lies_in_memory(file) {
            return None;
        }
        let seen = SystemTime::now();
        let stamp = FileStamp::of(&Metadata::from_file(file).ok()?);
        let changed = SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_secs(stamp.last_second().try_into().ok()?))?;
        Some(Self {
            path_hash: blake3::hash(path.as_os_str().as_encoded_bytes()),
            stamp,
            changed,
            seen,
        })
    }

    /// Returns the name of the path's cache entry.
    pub(super) fn entry_name(&self) -> String {
        self.path_hash.to_hex().to_string()
    }

    /// Returns true if `later` is the same file, unmodified.
    pub(crate) fn is_still(&self, later: &Self) -> bool {
        self.stamp == later.stamp
    }

    /// Returns true if a change after this identity was taken would show.
    pub(crate) fn is_settled(&self) -> bool {
        has_settled(self.changed, self.seen)
    }

    /// Returns the digest in a cache entry, if the entry describes this file.
    pub(super) fn recognise(&self, entry: &[u8]) -> Option<Digest> {
        let cached: CachedDigest = serde_json::from_slice(entry).ok()?;
        (cached.stamp == self.stamp).then(|| Digest::from_hex(&cached.digest))?
    }

    /// Returns a cache entry for this file.
    pub(super) fn to_entry(&self, digest: Digest) -> Vec<u8> {
        let cached = CachedDigest { stamp: self.stamp, digest: digest.hex() };
        // Serialisation fails only for maps with keys that are not strings. There are none.
        serde_json::to_vec(&cached).unwrap_or_default()
    }
}

/// Returns true if the file is on an in-memory file system. Such a file system does not update the
/// times of a file that is written through a memory mapping.
#[cfg(target_os = "linux")]
fn lies_in_memory(file: &File) -> bool {
    /// The magic numbers of `tmpfs` and `ramfs`, from the kernel's `magic.h`.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::fstatfs(file).is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u64)))
}

#[cfg(not(target_os = "linux"))]
fn lies_in_memory(_: &File) -> bool {
    false
}
