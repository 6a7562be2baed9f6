//! Which file a file is, as its file system tells: so that megabytes which were hashed once are not hashed again.
//!
//! A file that was replaced has another number; one that was written has other times, of which nobody but the system sets the second. If all this were
//! forged, what runs is still the plugin whose digest stands in the result: the one that lay there before.

use crate::tool::Digest;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

#[cfg(all(test, unix))]
mod tests;
#[cfg(all(test, unix))]
pub(crate) use tests::identities;

/// File systems count times in steps, of 2 s at the most.
const SETTLED: Duration = Duration::from_secs(2);

/// Whether what was changed at a time would show any change after it was seen: what has just been written may be written again without its times showing it.
pub(crate) fn has_settled(changed: SystemTime, seen: SystemTime) -> bool {
    seen.duration_since(changed).is_ok_and(|age| age > SETTLED)
}

/// A file, as it was when it was looked at.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// The path, hashed: it names the entry and may be of any length.
    place: blake3::Hash,
    marks: Marks,
    changed: SystemTime,
    seen: SystemTime,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Marks {
    device: u64,
    number: u64,
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

#[derive(Serialize, Deserialize)]
struct Known {
    marks: Marks,
    digest: String,
}

impl Identity {
    /// Of an open file, which lies at this path. Taken before it is read: what changes from then on shows.
    #[cfg(unix)]
    pub(crate) fn of(path: &Path, file: &File) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        if lies_in_memory(file) {
            return None;
        }
        let seen = SystemTime::now();
        let meta = file.metadata().ok()?;
        let marks = Marks {
            device: meta.dev(),
            number: meta.ino(),
            size: meta.size(),
            written: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        };
        let changed =
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(meta.ctime().max(meta.mtime()).try_into().ok()?))?;
        Some(Self { place: blake3::hash(path.as_os_str().as_encoded_bytes()), marks, changed, seen })
    }

    /// Elsewhere every file is hashed at every start.
    #[cfg(not(unix))]
    pub(crate) fn of(_: &Path, _: &File) -> Option<Self> {
        None
    }

    /// A name for its path.
    pub(super) fn place(&self) -> String {
        self.place.to_hex().to_string()
    }

    /// Whether another look found the same file, untouched.
    pub(crate) fn is_still(&self, later: &Self) -> bool {
        self.marks == later.marks
    }

    /// Whether a change after it was looked at would show.
    pub(crate) fn is_settled(&self) -> bool {
        has_settled(self.changed, self.seen)
    }

    /// The digest that stands in an entry, where the entry is about this very file.
    pub(super) fn recognise(&self, entry: &[u8]) -> Option<Digest> {
        let known: Known = serde_json::from_slice(entry).ok()?;
        (known.marks == self.marks).then(|| Digest::from_hex(&known.digest))?
    }

    /// An entry about this file.
    pub(super) fn with(&self, digest: Digest) -> Vec<u8> {
        let known = Known { marks: self.marks.clone(), digest: digest.hex() };
        // Only maps with keys that are no strings fail to serialise, and there are none.
        serde_json::to_vec(&known).unwrap_or_default()
    }
}

/// A file system in memory does not date what is written through a mapping.
#[cfg(target_os = "linux")]
fn lies_in_memory(file: &File) -> bool {
    /// The numbers of `tmpfs` and `ramfs` in the kernel's `magic.h`.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::fstatfs(file).is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u64)))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn lies_in_memory(_: &File) -> bool {
    false
}
