//! A file is recognised only while its identity is unchanged.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
use super::*;
use std::io::Write as _;
use std::path::PathBuf;

/// Returns a file on a file system with reliable times, if there is one. The file is next to the
/// test binary, because the temporary directory is often in memory.
fn dated() -> Option<(tempfile::TempDir, PathBuf)> {
    let beside = std::env::current_exe().unwrap();
    let folder = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
    let path = folder.path().join("a.wasm");
    std::fs::write(&path, "plugin").unwrap();
    let file = File::open(&path).unwrap();
    let system = rustix::fs::fstatfs(&file).unwrap().f_type as u64;
    let in_memory = cfg!(target_os = "linux") && [0x0102_1994, 0x8584_58f6].contains(&system);
    assert_eq!(Identity::new(&path, &file).is_none(), in_memory);
    if in_memory {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: the tests lie in memory, where files are not dated well enough"
        );
        return None;
    }
    Some((folder, path))
}

fn identity(path: &Path) -> Identity {
    Identity::new(path, &File::open(path).unwrap()).unwrap()
}

/// Returns the identity of one file just after it was written, the same long after, and the
/// identity of another file; `None` where times are not reliable.
pub(crate) fn identities() -> Option<(Identity, Identity, Identity)> {
    let (folder, path) = dated()?;
    let fresh = identity(&path);
    let settled = Identity { changed: fresh.seen - 2 * SETTLED, ..fresh.clone() };
    let path = folder.path().join("b.wasm");
    std::fs::write(&path, "another plugin").unwrap();
    let another = identity(&path);
    let another = Identity { changed: another.seen - 2 * SETTLED, ..another };
    Some((fresh, settled, another))
}

#[test]
fn file_is_recognised_until_it_changes() {
    let Some((_folder, path)) = dated() else { return };
    let digest = Digest::of(b"plugin");
    let entry = identity(&path).to_entry(digest);
    assert_eq!(identity(&path).recognise(&entry), Some(digest));
    let before = identity(&path);
    assert!(before.is_still(&identity(&path)));
    std::fs::write(&path, "longer plugin").unwrap();
    assert_eq!(identity(&path).recognise(&entry), None);
    assert!(!before.is_still(&identity(&path)), "what was written while it was read shows");
    // The same length, and the modification time set back: only the change time differs, which no
    // program can set.
    let mut forged = identity(&path);
    let before = serde_json::from_slice::<CachedDigest>(&entry).unwrap().stamp;
    forged.stamp = before.changed_at((0, 1));
    assert_eq!(forged.recognise(&entry), None);
}

#[test]
fn recently_written_file_is_not_remembered() {
    let Some((_folder, path)) = dated() else { return };
    let fresh = identity(&path);
    assert!(!fresh.is_settled());
    // The identity was taken while the file was fresh, so the duration of the read does not matter.
    let aged = |age| Identity { changed: fresh.seen - age, ..fresh.clone() };
    assert!(aged(2 * SETTLED).is_settled() && !aged(SETTLED).is_settled());
}

/// A write through a memory mapping does not show in the times of the file.
#[cfg(target_os = "linux")]
#[test]
fn file_in_memory_is_not_remembered() {
    use rustix::fs::{MemfdFlags, memfd_create};
    let file = File::from(memfd_create("plugin", MemfdFlags::CLOEXEC).unwrap());
    assert!(Identity::new(Path::new("/plugin"), &file).is_none());
}
