//! A directory becomes a cache only if it holds nothing else.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

mod files;

use super::super::Cache;
use super::*;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};

/// Returns a private directory with these files.
fn holding(files: &[&str]) -> tempfile::TempDir {
    let outer = tempfile::tempdir().unwrap();
    fs::DirBuilder::new().mode(0o700).create(outer.path().join("dir")).unwrap();
    files
        .iter()
        .for_each(|name| fs::write(outer.path().join("dir").join(name), "as it was").unwrap());
    outer
}

#[test]
fn directory_with_other_files_is_not_a_cache() {
    for foreign in ["main.rs", ".git", "Makefile", "code"] {
        let outer = holding(&["key", foreign]);
        let mut made = false;
        let before_key = |_: &Path| {
            made = true;
            Ok(())
        };
        let refused =
            Cache::open_and(&outer.path().join("dir"), None, before_key).unwrap_err().to_string();
        assert!(refused.contains(&format!("it holds `{foreign}`")) && !made, "{refused}");
        assert_eq!(fs::read(outer.path().join("dir/key")).unwrap(), b"as it was");
    }
    // A private file that is longer than a key.
    let outer = holding(&["main.rs"]);
    let key = outer.path().join("dir/key");
    fs::write(&key, [0; 33]).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(Cache::open(&outer.path().join("dir")).is_err());
    let outer = holding(&["key", ".tmp0", "a.code", "a.about", "a.verdict", "a.file"]);
    Cache::open(&outer.path().join("dir")).unwrap();
    // A file that another program adds later does not make the cache unusable.
    fs::write(outer.path().join("dir/CACHEDIR.TAG"), "").unwrap();
    Cache::open(&outer.path().join("dir")).unwrap();
}

#[test]
fn links_and_pipes_in_the_cache_are_refused() {
    let outer = holding(&[]);
    let at = |name: &str| outer.path().join("dir").join(name);
    let private = PrivateDir::open(&outer.path().join("dir"), None).unwrap();
    private.put("one", &[b"own"]).unwrap();
    symlink("one", at("link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert!(private.file("one").is_ok());
    for name in ["link", "pipe", "missing"] {
        assert!(private.file(name).is_err(), "{name}");
    }
}
