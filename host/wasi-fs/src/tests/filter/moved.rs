//! Directories that other programs move while a guest holds them open: their present place decides.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use wasmtime::component::Resource;

use super::{REFUSED, names, rules, secrets, under};
use crate::protected_paths::HardLinks;
use crate::tests::{
    Call, Descriptor, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, READ, WRITE, code, everywhere,
    now, write_some,
};

fn open_in(call: &mut Call, dir: u32, path: &str) -> Result<(), ErrorCode> {
    let fd = Resource::<Descriptor>::new_borrow(dir);
    let opened = now(call.view().open_at(fd, FOLLOW, path.to_owned(), OpenFlags::empty(), READ));
    code(opened).map(drop)
}

fn read_in(call: &mut Call, dir: u32, path: &str) -> Result<String, ErrorCode> {
    let fd = Resource::<Descriptor>::new_borrow(dir);
    let opened = now(call.view().open_at(fd, FOLLOW, path.to_owned(), OpenFlags::empty(), READ));
    let (bytes, _) = code(now(call.view().read(code(opened)?, 9, 0)))?;
    Ok(String::from_utf8(bytes).unwrap())
}

#[test]
fn a_directory_that_became_denied_is_closed_for_its_handle() {
    everywhere(|call| {
        secrets(call);
        let dir = call.open_to_read("src").unwrap().rep();
        assert_eq!(open_in(call, dir, "main.rs"), Ok(()));
        fs::rename(call.host("src"), call.host("secrets/src")).unwrap();
        for path in ["main.rs", "missing", "sub", "."] {
            assert_eq!(open_in(call, dir, path), REFUSED, "{path}");
        }
        let fd = || Resource::<Descriptor>::new_borrow(dir);
        assert_eq!(code(now(call.view().read_directory(fd()))).map(drop), REFUSED);
        assert_eq!(code(now(call.view().create_directory_at(fd(), "x".to_owned()))), REFUSED);
        assert_eq!(code(now(call.view().unlink_file_at(fd(), "main.rs".to_owned()))), REFUSED);
        let root = call.root();
        let out = now(call.view().rename_at(fd(), "main.rs".to_owned(), root, "x.rs".to_owned()));
        assert_eq!(code(out), REFUSED);
        // It is judged by its place and not by its history.
        fs::rename(call.host("secrets/src"), call.host("again")).unwrap();
        assert_eq!(open_in(call, dir, "main.rs"), Ok(()));
        assert_eq!(open_in(call, dir, ".env.local"), REFUSED);
    });
}

#[test]
fn a_workspace_that_left_its_path_in_another_one_is_closed() {
    everywhere(|call| {
        call.within_another();
        let dir = call.open_to_read("dir").unwrap().rep();
        let file = call.open("file.txt", FOLLOW, OpenFlags::empty(), WRITE).unwrap();
        let stream = code(call.view().write_via_stream(file, 0)).unwrap();
        assert_eq!(open_in(call, dir, "deep.txt"), Ok(()));
        let (here, moved) = (call.host(""), call.outer.path().join("outside/moved"));
        fs::rename(&here, &moved).unwrap();
        for path in ["deep.txt", "missing", "sub", "."] {
            assert_eq!(open_in(call, dir, path), REFUSED, "{path}");
        }
        for (operation, done) in super::operations(call, "file.txt") {
            assert_eq!(done, REFUSED, "{operation}");
        }
        let fd = || Resource::<Descriptor>::new_borrow(dir);
        assert_eq!(code(now(call.view().read_directory(fd()))).map(drop), REFUSED);
        assert_eq!(code(now(call.view().create_directory_at(fd(), "x".to_owned()))), REFUSED);
        assert_eq!(code(now(call.view().unlink_file_at(fd(), "deep.txt".to_owned()))), REFUSED);
        assert_eq!(write_some(call.table.get_mut(&stream).unwrap(), "changed"), REFUSED);
        assert_eq!(fs::read_to_string(moved.join("file.txt")).unwrap(), "inside");
        assert_eq!(fs::read_dir(moved.join("dir")).unwrap().count(), 2);
        fs::rename(&moved, &here).unwrap();
        assert_eq!(open_in(call, dir, "deep.txt"), Ok(()));
    });
}

#[test]
fn a_refusal_does_not_show_the_new_name_of_a_moved_directory() {
    everywhere(|call| {
        secrets(call);
        let dir = call.open_to_read("src").unwrap().rep();
        fs::rename(call.host("src"), call.host("secrets/codename")).unwrap();
        assert_eq!(open_in(call, dir, "main.rs"), REFUSED);
        let said = call.fs.refusal().unwrap().to_string();
        assert!(said.contains("src/main.rs") && !said.contains("codename"), "{said}");
    });
}

#[test]
fn an_open_file_that_became_denied_is_not_written() {
    everywhere(|call| {
        secrets(call);
        let file = call.open("src/main.rs", FOLLOW, OpenFlags::empty(), WRITE).unwrap();
        let stream = code(call.view().write_via_stream(file, 0)).unwrap();
        fs::rename(call.host("src/main.rs"), call.host("secrets/main.rs")).unwrap();
        let written = write_some(call.table.get_mut(&stream).unwrap(), "changed");
        assert_eq!(written, REFUSED);
        assert_eq!(fs::read_to_string(call.host("secrets/main.rs")).unwrap(), "content");
    });
}

#[test]
fn a_listing_is_judged_by_the_place_where_it_began() {
    everywhere(|call| {
        secrets(call);
        let dir = call.open("src", FOLLOW, OpenFlags::DIRECTORY, READ).unwrap();
        fs::rename(call.host("src"), call.host("shown")).unwrap();
        let stream = code(now(call.view().read_directory(dir))).unwrap().rep();
        assert_eq!(names(call, stream), ["main.rs", "sub", "to_env"]);
    });
}

/// Another program moves a directory to a denied place, has a secret in it only there, and moves it
/// back.
#[test]
fn no_race_reads_a_file_that_exists_only_at_a_denied_place() {
    everywhere(|call| {
        for dir in ["open/dir", "secrets"] {
            fs::create_dir_all(call.host(dir)).unwrap();
        }
        under(call, HardLinks::Allow, rules(None, &["secrets/**"]));
        let [open, denied] = ["open/dir", "secrets/dir"].map(|path| call.host(path));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    fs::write(open.join("file"), "open").unwrap();
                    fs::remove_file(open.join("file")).unwrap();
                    fs::rename(&open, &denied).unwrap();
                    fs::write(denied.join("file"), "secret").unwrap();
                    fs::remove_file(denied.join("file")).unwrap();
                    fs::rename(&denied, &open).unwrap();
                }
            });
            let (mut read, mut leaked) = (0, false);
            for _ in 0..20_000 {
                call.again();
                let by_name = call.read("open/dir/file");
                let dir = call.open_to_read("open/dir");
                let by_handle = dir.and_then(|dir| read_in(call, dir.rep(), "file"));
                for text in [by_name, by_handle].into_iter().flatten() {
                    read += text.len();
                    leaked |= text != "open" && !text.is_empty();
                }
                if leaked || read > 200 {
                    break;
                }
            }
            // Before the assertions, since the other thread would run for ever after a failed one.
            stop.store(true, Ordering::Relaxed);
            assert!(!leaked && read > 0, "{read}");
        });
    });
}
