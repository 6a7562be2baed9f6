//! Files and directories that are open while they, or what is around them, move.

use std::fs;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::types::NewTimestamp;

use super::{REFUSED, nothing_changes, repositories, snapshot};
use crate::tests::{
    Call, Descriptor, FOLLOW, HostDescriptor, OpenFlags, WRITE, code, everywhere, now, write_some,
};

#[test]
fn descriptor_is_judged_by_its_location() {
    everywhere(|call| {
        repositories(call);
        let [sub, git, hooks] = ["sub", "sub/.git", "sub/.git/hooks"]
            .map(|path| call.open_to_read(path).unwrap().rep());
        let fd = |rep: u32| Resource::<Descriptor>::new_borrow(rep);
        assert_eq!(call.rename("sub", "other"), Ok(()));
        let before = snapshot(call);
        for (dir, path) in [
            (git, "config"),
            (git, "new"),
            (hooks, "new"),
            (hooks, "../config"),
            (hooks, "../../.git/config"),
            (sub, ".git/config"),
            (sub, "../other/.git/config"),
        ] {
            let open = OpenFlags::CREATE;
            let opened = now(call.view().open_at(fd(dir), FOLLOW, path.to_owned(), open, WRITE));
            assert_eq!(code(opened).map(drop), REFUSED, "{path}");
            assert_eq!(
                code(now(call.view().unlink_file_at(fd(dir), path.to_owned()))),
                REFUSED,
                "{path}"
            );
            assert_eq!(
                code(now(call.view().create_directory_at(fd(dir), format!("{path}x")))),
                REFUSED,
                "{path}"
            );
            let root = call.root();
            let moved =
                now(call.view().rename_at(root, "file.txt".to_owned(), fd(dir), path.to_owned()));
            assert_eq!(code(moved), REFUSED, "{path}");
        }
        for dir in [git, hooks] {
            let set = now(call.view().set_times(fd(dir), NewTimestamp::Now, NewTimestamp::Now));
            assert_eq!(code(set), REFUSED);
        }
        assert_eq!(snapshot(call), before);
    });
}

#[test]
fn moved_repository_stays_protected_for_open_handles() {
    everywhere(|call| {
        repositories(call);
        fs::create_dir(call.host("draft")).unwrap();
        fs::write(call.host("draft/config"), "x").unwrap();
        let dir = call.open_to_read("draft").unwrap().rep();
        let file = call.open("draft/config", FOLLOW, OpenFlags::empty(), WRITE).unwrap().rep();
        let write = |call: &mut Call| {
            code(now(call.view().write(Resource::new_borrow(file), b"y".to_vec(), 0)))
        };
        assert_eq!(write(call), Ok(1));
        // The ordinary directory becomes a repository.
        fs::rename(call.host("draft"), call.host("dir/.git")).unwrap();
        let open = now(call.view().open_at(
            Resource::new_borrow(dir),
            FOLLOW,
            "new".to_owned(),
            OpenFlags::CREATE,
            WRITE,
        ));
        assert_eq!(code(open).map(drop), REFUSED);
        let time = NewTimestamp::Now;
        assert_eq!(
            code(now(call.view().set_times(Resource::new_borrow(dir), time, time))),
            REFUSED
        );
        let here = now(call.view().set_times_at(
            Resource::new_borrow(dir),
            FOLLOW,
            ".".to_owned(),
            time,
            time,
        ));
        assert_eq!(code(here), REFUSED);
        assert_eq!(write(call).map(drop), REFUSED);
        assert_eq!(code(now(call.view().set_size(Resource::new_borrow(file), 0))), REFUSED);
        let set = now(call.view().set_times(
            Resource::new_borrow(file),
            NewTimestamp::Now,
            NewTimestamp::Now,
        ));
        assert_eq!(code(set), REFUSED);
        let stream = code(call.view().append_via_stream(Resource::new_borrow(file))).unwrap();
        assert_eq!(write_some(call.table.get_mut(&stream).unwrap(), "more"), REFUSED);
        let stream = code(call.view().write_via_stream(Resource::new_borrow(file), 0)).unwrap();
        assert_eq!(write_some(call.table.get_mut(&stream).unwrap(), "more"), REFUSED);
        assert_eq!(fs::read_to_string(call.host("dir/.git/config")).unwrap(), "y");
        fs::rename(call.host("dir/.git"), call.host("draft")).unwrap();
        assert_eq!(write(call), Ok(1));
        // The workspace's own repository stays protected under every name.
        fs::rename(call.host(".git"), call.host("renamed")).unwrap();
        call.again();
        nothing_changes(call, "renamed/config");
    });
}

#[test]
fn file_moved_or_removed_while_open_is_writable() {
    everywhere(|call| {
        let file = call.open("file.txt", FOLLOW, OpenFlags::empty(), WRITE).unwrap().rep();
        let write = |call: &mut Call| {
            code(now(call.view().write(Resource::new_borrow(file), b"y".to_vec(), 0)))
        };
        call.rename("file.txt", "dir/moved.txt").unwrap();
        assert_eq!(write(call), Ok(1));
        assert_eq!(fs::read_to_string(call.host("dir/moved.txt")).unwrap(), "ynside");
        call.unlink("dir/moved.txt").unwrap();
        assert_eq!(write(call), Ok(1));
        assert!(!call.fs.refused());
    });
}

#[test]
fn file_moved_outside_while_open_is_not_written() {
    everywhere(|call| {
        let file = call.open("file.txt", FOLLOW, OpenFlags::empty(), WRITE).unwrap().rep();
        fs::rename(call.host("file.txt"), call.outer.path().join("outside/file.txt")).unwrap();
        let written = now(call.view().write(Resource::new_borrow(file), b"y".to_vec(), 0));
        assert_eq!(code(written).map(drop), REFUSED);
        assert_eq!(
            fs::read_to_string(call.outer.path().join("outside/file.txt")).unwrap(),
            "inside"
        );
    });
}
