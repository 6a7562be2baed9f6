//! The size of a cache, and the removal of its entries: the least recently used ones beyond the
//! bound, or all on request.

use super::private::PrivateDir;
use std::fs::File;
use std::io;
use std::time::{Duration, SystemTime};

/// The bound on the entries of a cache, in bytes. Some thirty plugins in Python fit, or thousands
/// in Rust; what is removed costs a compilation.
pub(super) const BOUND: u64 = 1 << 30;
/// The time after which another use of an entry is recorded: the order of use need not be finer,
/// and most reads then write nothing.
const STALE: Duration = Duration::from_secs(60 * 60);

/// The entries of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// The number of plugins whose compiled code is there.
    pub plugins: u64,
    /// The size of all entries, in bytes.
    pub bytes: u64,
}

impl CacheUsage {
    /// The size beyond which the least recently used entries are removed, in bytes.
    pub const BOUND: u64 = BOUND;

    fn add(&mut self, entry: &Kept) {
        self.plugins += u64::from(entry.name.ends_with(".code"));
        self.bytes += entry.bytes;
    }

    fn of(entries: &[Kept]) -> Self {
        let mut usage = Self::default();
        entries.iter().for_each(|entry| usage.add(entry));
        usage
    }
}

/// Returns the size of a cache.
pub(super) fn usage(dir: &PrivateDir) -> io::Result<CacheUsage> {
    Ok(CacheUsage::of(&entries(dir)?))
}

/// Removes all entries, and returns what was removed.
pub(super) fn clear(dir: &PrivateDir) -> io::Result<CacheUsage> {
    let entries = entries(dir)?;
    entries.iter().for_each(|entry| dir.remove(&entry.name));
    Ok(CacheUsage::of(&entries))
}

/// Removes the least recently used entries until the others are within the bound.
pub(super) fn trim(dir: &PrivateDir, bound: u64) -> io::Result<()> {
    let mut entries = entries(dir)?;
    let mut bytes = CacheUsage::of(&entries).bytes;
    if bytes <= bound {
        return Ok(());
    }
    entries.sort_by_key(|entry| entry.used);
    for entry in entries {
        if bytes <= bound {
            break;
        }
        dir.remove(&entry.name);
        bytes = bytes.saturating_sub(entry.bytes);
    }
    Ok(())
}

/// Records that an entry is used now, by its time of modification: a file system need not keep the
/// time of access. A failure only makes the order of removal worse.
pub(super) fn note_use(file: &File, used: io::Result<SystemTime>) {
    let is_stale = used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > STALE));
    if is_stale {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// An entry in the directory.
struct Kept {
    name: String,
    bytes: u64,
    used: SystemTime,
}

fn entries(dir: &PrivateDir) -> io::Result<Vec<Kept>> {
    let mut entries = Vec::new();
    for (name, meta) in dir.entries()? {
        let used =
            meta.modified().map_or(SystemTime::UNIX_EPOCH, cap_std::time::SystemTime::into_std);
        entries.push(Kept { name, bytes: meta.len(), used });
    }
    Ok(entries)
}
