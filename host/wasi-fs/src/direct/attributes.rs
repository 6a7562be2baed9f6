//! Metadata of files: size, type, timestamps and identity.

use std::hash::{DefaultHasher, Hash, Hasher};

use rustix::fs::{
    AtFlags, FileType, Nsecs, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fstat, futimens,
    utimensat,
};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorStat, ErrorCode, MetadataHashValue, NewTimestamp,
};

use super::entries::to_change;
use super::kernel::check_directory;
use super::listing::descriptor_type;
use super::locate::{Follow, is_directory, look};
use super::mount::OpenDir;
use super::node::Node;
use crate::errors::{Fault, Refusal};
use crate::path::{GuestPath, HERE};
use crate::path_rules::Standing;
use crate::protected_paths::names::shown;
use crate::usage::Usage;

/// Returns the current metadata of an open file or directory.
pub(super) fn stat(node: &Node, usage: &Usage) -> Result<DescriptorStat, Fault> {
    Ok(descriptor_stat(&fstat(node.handle()?)?, usage))
}

/// Returns the metadata of the file at a path.
pub(super) fn stat_at(
    dir: &OpenDir,
    path: &str,
    follow: Follow,
    usage: &Usage,
) -> Result<DescriptorStat, Fault> {
    Ok(descriptor_stat(&found(dir, path, follow, usage)?, usage))
}

/// Returns whether two handles refer to the same file or directory.
pub(super) fn is_same(a: &Node, b: &Node) -> Result<bool, Fault> {
    if let (Node::Unmounted, Node::Unmounted) = (a, b) {
        return Ok(true);
    }
    let (a, b) = (fstat(a.handle()?)?, fstat(b.handle()?)?);
    Ok(a.st_dev == b.st_dev && a.st_ino == b.st_ino)
}

/// Returns a hash that identifies a file; wasi-libc uses it as the inode number.
pub(super) fn hash(node: &Node) -> Result<MetadataHashValue, Fault> {
    Ok(identity_hash(&fstat(node.handle()?)?))
}

/// Returns the same hash for the file at a path.
pub(super) fn hash_at(
    dir: &OpenDir,
    path: &str,
    follow: Follow,
    usage: &Usage,
) -> Result<MetadataHashValue, Fault> {
    Ok(identity_hash(&found(dir, path, follow, usage)?))
}

/// Sets the timestamps of an open file or directory.
pub(super) fn set_times(
    node: &Node,
    access: NewTimestamp,
    modification: NewTimestamp,
    usage: &Usage,
) -> Result<(), Fault> {
    let times = timestamps(access, modification)?;
    match node {
        Node::File(file) => {
            file.check_place(usage)?;
            check_links(&fstat(file.as_file())?, usage)?;
            futimens(file.as_file(), &times)?;
            file.note_change(usage);
        }
        // By path: the mount's own handle may be `O_PATH`, which `futimens` rejects.
        Node::Dir(dir) => {
            usage.protected()?.check_names(dir.name())?;
            usage.protected()?.check_dir(dir.handle())?;
            check_permitted(dir, usage)?;
            check_directory(dir.handle())?;
            utimensat(dir.handle(), HERE, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            usage.note_changed(dir.name());
        }
        Node::Unmounted => return Err(Refusal::Unmounted.into()),
    }
    Ok(())
}

/// Refuses a directory that was moved to a place that the path rules deny.
fn check_permitted(dir: &OpenDir, usage: &Usage) -> Result<(), Fault> {
    let Some(rules) = usage.filter() else { return Ok(()) };
    match rules.standing_at(dir.handle(), HERE.as_ref())? {
        Standing::Denied => Err(Refusal::Excluded(shown(dir.name()).into()).into()),
        Standing::Way | Standing::Permitted => Ok(()),
    }
}

/// Sets the timestamps of the file at a path.
pub(super) fn set_times_at(
    dir: &OpenDir,
    path: &str,
    follow: Follow,
    (access, modification): (NewTimestamp, NewTimestamp),
    usage: &Usage,
) -> Result<(), Fault> {
    let times = timestamps(access, modification)?;
    let (place, found) = look(dir, &to_change(path, usage)?, follow, usage)?;
    place.check_change(usage)?;
    let found = found.ok_or(ErrorCode::NoEntry)?;
    check_links(&found, usage)?;
    utimensat(place.handle(), &*place.name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    usage.note_changed(&place.real_name());
    Ok(())
}

/// Refuses changes to a file with several hard links, since timestamps belong to the inode and not
/// to a name. A directory always has several links, so its count is ignored.
fn check_links(stat: &Stat, usage: &Usage) -> Result<(), Fault> {
    let names = if is_directory(stat) { 1 } else { number(stat.st_nlink).unwrap_or(u64::MAX) };
    Ok(usage.check_links(names)?)
}

fn found(dir: &OpenDir, path: &str, follow: Follow, usage: &Usage) -> Result<Stat, Fault> {
    let (_, found) = look(dir, &GuestPath::parse(path)?, follow, usage)?;
    Ok(found.ok_or(ErrorCode::NoEntry)?)
}

/// Converts the metadata. The links and the size of a directory count the entries that path rules
/// deny, so that these are hidden under such rules.
fn descriptor_stat(stat: &Stat, usage: &Usage) -> DescriptorStat {
    let hides_entries = is_directory(stat) && usage.denies_paths();
    let [link_count, size] = match hides_entries {
        true => [1, 0],
        false => [number(stat.st_nlink).unwrap_or(u64::MAX), number(stat.st_size).unwrap_or(0)],
    };
    DescriptorStat {
        type_: descriptor_type(FileType::from_raw_mode(stat.st_mode)),
        link_count,
        size,
        data_access_timestamp: datetime(stat.st_atime, stat.st_atime_nsec),
        data_modification_timestamp: datetime(stat.st_mtime, stat.st_mtime_nsec),
        status_change_timestamp: datetime(stat.st_ctime, stat.st_ctime_nsec),
    }
}

/// Converts a field of `stat`, whose width and sign differ between systems.
pub(super) fn number(value: impl TryInto<u64>) -> Option<u64> {
    value.try_into().ok()
}

/// Converts a timestamp. WASI counts from 1970 on: an earlier time is omitted instead of failing
/// the whole operation.
fn datetime(seconds: impl TryInto<u64>, nanoseconds: impl TryInto<u32>) -> Option<Datetime> {
    Some(Datetime { seconds: seconds.try_into().ok()?, nanoseconds: nanoseconds.try_into().ok()? })
}

fn timestamps(access: NewTimestamp, modification: NewTimestamp) -> Result<Timestamps, Fault> {
    Ok(Timestamps { last_access: timespec(access)?, last_modification: timespec(modification)? })
}

fn timespec(time: NewTimestamp) -> Result<Timespec, Fault> {
    match time {
        NewTimestamp::NoChange => Ok(Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }),
        NewTimestamp::Now => Ok(Timespec { tv_sec: 0, tv_nsec: UTIME_NOW }),
        NewTimestamp::Timestamp(time) => {
            let carry = u64::from(time.nanoseconds / 1_000_000_000);
            let seconds = time
                .seconds
                .checked_add(carry)
                .and_then(|s| s.try_into().ok())
                .ok_or(ErrorCode::Overflow)?;
            Ok(Timespec { tv_sec: seconds, tv_nsec: Nsecs::from(time.nanoseconds % 1_000_000_000) })
        }
    }
}

/// Hashes the device and inode numbers, so that the guest does not learn the host's own.
fn identity_hash(stat: &Stat) -> MetadataHashValue {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, stat.st_dev, stat.st_ino).hash(&mut hasher);
        hasher.finish()
    };
    MetadataHashValue { lower: half(0), upper: half(1) }
}
