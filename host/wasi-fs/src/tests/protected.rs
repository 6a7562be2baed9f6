//! Protected trees: no operation changes them under any name, wherever they have moved.

mod host;
mod opened;
mod repositories;
mod settings;
mod several;
mod ways;

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use wasmtime_wasi::p2::bindings::filesystem::types::NewTimestamp;

use super::{Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, READ, WRITE, code, now};
use crate::protected_paths::{HardLinks, Protection};

const REFUSED: Result<(), ErrorCode> = Err(ErrorCode::NotPermitted);

/// Creates a repository at the root, a nested one, and the `.git` file of a worktree.
fn repositories(call: &mut Call) {
    for dir in [".git/hooks", "sub/.git/hooks", "sub/.GIT", "tree"] {
        fs::create_dir_all(call.host(dir)).unwrap();
    }
    for file in
        [".git/config", "sub/.git/config", "sub/.git/hooks/pre-commit.sample", "sub/.GIT/config"]
    {
        fs::write(call.host(file), "[core]").unwrap();
    }
    fs::write(call.host("tree/.git"), "gitdir: ../.git/worktrees/tree").unwrap();
    call.keep(Protection::new(HardLinks::Allow, Vec::new()));
}

/// Tries every operation that could change the entry at a path.
fn changes(call: &mut Call, path: &str) -> Vec<(&'static str, Result<(), ErrorCode>)> {
    let set = |call: &mut Call| {
        let root = call.root();
        code(now(call.view().set_times_at(
            root,
            FOLLOW,
            path.to_owned(),
            NewTimestamp::Now,
            NewTimestamp::Now,
        )))
    };
    vec![
        (
            "create",
            call.open(path, FOLLOW, OpenFlags::CREATE | OpenFlags::EXCLUSIVE, WRITE).map(drop),
        ),
        ("create to read", call.open(path, FOLLOW, OpenFlags::CREATE, READ).map(drop)),
        ("write", call.open(path, FOLLOW, OpenFlags::empty(), WRITE).map(drop)),
        ("truncate", call.open(path, FOLLOW, OpenFlags::TRUNCATE, WRITE).map(drop)),
        ("truncate to read", call.open(path, FOLLOW, OpenFlags::TRUNCATE, READ).map(drop)),
        ("mkdir", call.mkdir(path)),
        ("rmdir", call.rmdir(path)),
        ("unlink", call.unlink(path)),
        ("rename from", call.rename(path, "moved")),
        ("rename onto", call.rename("file.txt", path)),
        ("rename a directory onto", call.rename("dir", path)),
        ("link from", call.hard_link(path, "linked")),
        ("link to", call.hard_link("file.txt", path)),
        ("set times", set(call)),
    ]
}

/// Tries all operations, and compares the file system before and after.
#[track_caller]
fn nothing_changes(call: &mut Call, path: &str) {
    let before = snapshot(call);
    for (operation, outcome) in changes(call, path) {
        assert_eq!(outcome, REFUSED, "{operation} {path}");
    }
    assert_eq!(snapshot(call), before, "{path}");
    assert_eq!(call.fs.modified(), [""; 0], "{path}");
}

/// Returns every entry with its time, inode and contents.
fn snapshot(call: &Call) -> Vec<String> {
    let (mut open, mut found) = (vec![call.host("")], Vec::new());
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let text =
                if meta.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
            found.push(format!(
                "{path:?} {} {} {} {text}",
                meta.ino(),
                meta.mtime_nsec(),
                meta.nlink()
            ));
            if meta.is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}
