//! Files of the cache are written atomically, belong to this user alone, and are removed when they
//! are abandoned.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

use super::super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Barrier;
use std::time::SystemTime;

/// Returns a temporary directory, and the handle of the cache directory inside it.
fn private() -> (tempfile::TempDir, PrivateDir) {
    let outer = tempfile::tempdir().unwrap();
    let private = PrivateDir::open(&outer.path().join("cache"), None).unwrap();
    (outer, private)
}

fn names(outer: &tempfile::TempDir) -> Vec<String> {
    let entries = fs::read_dir(outer.path().join("cache")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn first_writer_of_a_name_wins_without_leftovers() {
    let (outer, private) = private();
    private.write("name", &[b"fir", b"st"], Existing::Kept).unwrap();
    symlink("nowhere", outer.path().join("cache/link")).unwrap();
    for name in ["name", "link"] {
        let second = private.write(name, &[b"second"], Existing::Kept);
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{name}");
    }
    assert_eq!(fs::read(outer.path().join("cache/name")).unwrap(), b"first");
    private.put("name", &[b"other"]).unwrap();
    fs::create_dir(outer.path().join("cache/taken")).unwrap();
    private.put("taken", &[b"x"]).unwrap_err();
    assert_eq!(fs::read(outer.path().join("cache/name")).unwrap(), b"other");
    assert_eq!(names(&outer), ["link", "name", "taken"]);
}

#[test]
fn file_accessible_to_others_is_not_opened() {
    let (outer, private) = private();
    private.put("name", &[b"content"]).unwrap();
    assert!(private.file("name").is_ok() && private.has_file("name") && !private.has_file("other"));
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(outer.path().join("cache/name"), fs::Permissions::from_mode(mode))
            .unwrap();
        assert_eq!(
            private.file("name").unwrap_err().kind(),
            io::ErrorKind::InvalidData,
            "{mode:o}"
        );
    }
}

#[test]
fn exposed_key_is_replaced() {
    let (outer, private) = private();
    let key = outer.path().join("cache/key");
    let first = private.key().unwrap();
    assert_eq!(private.key().unwrap(), first);
    assert_eq!(names(&outer), ["key"]);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let second = private.key().unwrap();
    assert_eq!((private.key().unwrap(), second == first), (second, false));
    fs::write(&key, &second[1..]).unwrap();
    let third = private.key().unwrap();
    assert!(third != second && third != first && third != Key::default());
    fs::remove_file(&key).unwrap();
    symlink("elsewhere", &key).unwrap();
    private.key().unwrap_err();
    assert!(key.is_symlink());
}

#[test]
fn concurrent_starts_share_one_key() {
    const PROCESSES: usize = 8;
    for _ in 0..20 {
        let (outer, _) = private();
        let start = Barrier::new(PROCESSES);
        let keys: Vec<Key> = std::thread::scope(|scope| {
            let one = || {
                let private = PrivateDir::open(&outer.path().join("cache"), None).unwrap();
                start.wait();
                private.key().unwrap()
            };
            let all: Vec<_> = (0..PROCESSES).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|process| process.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
    }
}

#[test]
fn only_old_drafts_are_removed() {
    let (outer, private) = private();
    for (name, age) in
        [(".tmp0", ABANDONED * 2), (".tmp1", ABANDONED / 2), ("entry", ABANDONED * 2)]
    {
        private.put(name, &[b"x"]).unwrap();
        let file = File::options().write(true).open(outer.path().join("cache").join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    private.clear_abandoned();
    assert_eq!(names(&outer), [".tmp1", "entry"]);
}
