//! A workspace that is mounted read-only.

use std::fs;

use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, NewTimestamp};

use super::{
    Access, Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, Quotas, READ, WRITE, code, now,
    resolvers,
};
use crate::Refusal;

fn read_only(test: impl Fn(&mut Call)) {
    for resolver in resolvers() {
        test(&mut Call::new(resolver, Access::ReadOnly, Quotas::default()));
    }
}

/// Returns all data of the workspace that a guest could have changed.
fn snapshot(call: &Call) -> Vec<String> {
    let mut all = Vec::new();
    let mut pending = vec![call.host("")];
    while let Some(path) = pending.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        all.push(format!("{path:?} {:?} {}", metadata.modified().unwrap(), metadata.len()));
        if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            all.push(fs::read_to_string(&path).unwrap());
        }
    }
    all
}

#[test]
fn writable_opens_are_refused() {
    read_only(|call| {
        let before = snapshot(call);
        let opens =
            [OpenFlags::CREATE, OpenFlags::TRUNCATE, OpenFlags::CREATE | OpenFlags::EXCLUSIVE];
        for path in ["file.txt", "new.txt", "dir"] {
            for open in opens {
                for flags in [READ, WRITE, READ | WRITE] {
                    assert_eq!(
                        call.open(path, FOLLOW, open, flags).map(drop),
                        Err(ErrorCode::NotPermitted)
                    );
                }
            }
            assert_eq!(
                call.open(path, FOLLOW, OpenFlags::empty(), WRITE).map(drop),
                Err(ErrorCode::NotPermitted)
            );
        }
        assert_eq!(snapshot(call), before);
        assert_eq!(call.fs.refusal(), Some(&Refusal::ReadOnly));
    });
}

#[test]
fn directory_changes_are_refused() {
    read_only(|call| {
        let before = snapshot(call);
        assert_eq!(call.mkdir("new"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.rmdir("dir/sub"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.unlink("file.txt"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.rename("file.txt", "new"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.hard_link("file.txt", "new"), Err(ErrorCode::NotPermitted));
        let root = call.root();
        let made = code(now(call.view().symlink_at(root, "a".to_owned(), "b".to_owned())));
        assert_eq!(made, Err(ErrorCode::NotPermitted));
        assert_eq!(snapshot(call), before);
        assert!(call.fs.refused());
        assert_eq!(call.fs.modified(), [""; 0]);
    });
}

#[test]
fn open_file_changes_are_refused() {
    read_only(|call| {
        let before = snapshot(call);
        let rep = call.open_to_read("file.txt").unwrap().rep();
        let file = || wasmtime::component::Resource::new_borrow(rep);
        let time = NewTimestamp::Timestamp(Datetime { seconds: 1, nanoseconds: 0 });
        let refused = Err(ErrorCode::NotPermitted);
        assert_eq!(code(now(call.view().set_size(file(), 0))), refused);
        assert_eq!(code(now(call.view().set_times(file(), time, time))), refused);
        assert_eq!(code(now(call.view().write(file(), b"x".to_vec(), 0))).map(drop), refused);
        assert_eq!(code(call.view().write_via_stream(file(), 0)).map(drop), refused);
        assert_eq!(code(call.view().append_via_stream(file())).map(drop), refused);
        let root = call.root();
        let set = now(call.view().set_times_at(root, FOLLOW, "file.txt".to_owned(), time, time));
        assert_eq!(code(set), refused);
        assert_eq!(snapshot(call), before);
        assert!(call.fs.refused());
    });
}

#[test]
fn reading_operations_succeed() {
    read_only(|call| {
        assert_eq!(call.read("file.txt").unwrap(), "inside");
        assert_eq!(call.stat("dir", FOLLOW).unwrap().link_count, 3);
        let rep = call.open_to_read("file.txt").unwrap().rep();
        let file = || wasmtime::component::Resource::new_borrow(rep);
        assert_eq!(code(now(call.view().get_flags(file()))), Ok(DescriptorFlags::READ));
        assert_eq!(code(now(call.view().sync(file()))), Ok(()));
        assert_eq!(code(now(call.view().sync_data(file()))), Ok(()));
        let root = call.root();
        assert_eq!(code(now(call.view().get_flags(root))), Ok(DescriptorFlags::READ));
        assert!(!call.fs.refused());
    });
}
