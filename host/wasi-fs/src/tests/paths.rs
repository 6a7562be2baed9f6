//! Paths without symbolic links.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorType, NewTimestamp, PathFlags,
};

use super::{
    Access, Call, ErrorCode, FOLLOW, Filesystem, HostDescriptor, Mount, OpenFlags, Options,
    PREOPEN_NAME, Quotas, READ, Resolver, code, everywhere, now,
};
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;

/// Returns the outcomes of all operations on a path.
fn every_operation(call: &mut Call, path: &str) -> Vec<Result<(), ErrorCode>> {
    vec![
        call.open_to_read(path).map(drop),
        call.open_to_write(path).map(drop),
        call.stat(path, FOLLOW).map(drop),
        call.stat(path, PathFlags::empty()).map(drop),
        call.mkdir(path),
        call.rmdir(path),
        call.unlink(path),
        call.rename(path, "renamed"),
        call.rename("file.txt", path),
        call.hard_link(path, "linked"),
        call.hard_link("file.txt", path),
        call.read_link(path).map(drop),
    ]
}

#[test]
fn path_outside_is_refused_in_every_operation() {
    everywhere(|call| {
        let absolute = call.outer.path().join("outside/secret.txt");
        let outs = [
            "../outside/secret.txt",
            "dir/../../outside/secret.txt",
            "/file.txt",
            "//file.txt",
            "dir/sub/../../../x",
        ];
        for path in outs.into_iter().chain(absolute.to_str()) {
            for outcome in every_operation(call, path) {
                assert_eq!(outcome, Err(ErrorCode::NotPermitted), "{path}");
            }
        }
        assert!(call.fs.refused());
        assert_eq!(call.fs.modified(), [""; 0]);
        assert_eq!(call.secret(), "secret");
    });
}

#[test]
fn parent_of_the_workspace_is_refused() {
    everywhere(|call| {
        for path in ["..", "../", "../.", "dir/../..", "./..", ".//..//"] {
            assert_eq!(call.open_to_read(path).map(drop), Err(ErrorCode::NotPermitted), "{path}");
            assert_eq!(call.stat(path, FOLLOW).map(drop), Err(ErrorCode::NotPermitted), "{path}");
        }
    });
}

#[test]
fn parent_components_inside_are_followed() {
    everywhere(|call| {
        for path in
            ["dir/../file.txt", "./file.txt", "dir/sub/../../file.txt", "dir//sub/.././../file.txt"]
        {
            assert_eq!(call.read(path).unwrap(), "inside", "{path}");
            assert_eq!(call.stat(path, PathFlags::empty()).unwrap().size, 6, "{path}");
        }
        assert!(!call.fs.refused());
    });
}

#[test]
fn malformed_path_is_refused_before_use() {
    everywhere(|call| {
        let long = "x/".repeat(2_100);
        let malformed = [
            ("", ErrorCode::NoEntry),
            ("a\0b", ErrorCode::Invalid),
            (&long, ErrorCode::NameTooLong),
        ];
        for (path, expected) in malformed {
            for outcome in every_operation(call, path) {
                assert_eq!(outcome, Err(expected), "{path:?}");
            }
        }
        assert_eq!(call.open_to_read(&"x".repeat(300)).map(drop), Err(ErrorCode::NameTooLong));
    });
}

#[test]
fn trailing_slash_means_a_directory() {
    everywhere(|call| {
        assert_eq!(call.open_to_read("file.txt/").map(drop), Err(ErrorCode::NotDirectory));
        assert_eq!(call.open_to_write("file.txt/").map(drop), Err(ErrorCode::NotDirectory));
        assert_eq!(call.open_to_write("new.txt/").map(drop), Err(ErrorCode::IsDirectory));
        assert_eq!(call.stat("file.txt/", FOLLOW).map(drop), Err(ErrorCode::NotDirectory));
        assert_eq!(call.unlink("file.txt/"), Err(ErrorCode::NotDirectory));
        assert_eq!(call.rename("file.txt/", "x"), Err(ErrorCode::NotDirectory));
        assert_eq!(call.rename("file.txt", "x/"), Err(ErrorCode::NotDirectory));
        assert_eq!(call.hard_link("file.txt/", "x"), Err(ErrorCode::NotDirectory));
        assert_eq!(call.hard_link("file.txt", "x/"), Err(ErrorCode::NoEntry));
        assert_eq!(call.hard_link("file.txt", "dir/deep.txt/"), Err(ErrorCode::NotDirectory));
        assert_eq!(call.stat("dir//", FOLLOW).unwrap().type_, DescriptorType::Directory);
        assert_eq!(call.mkdir("made/"), Ok(()));
        assert_eq!(call.rename("made/", "moved/"), Ok(()));
        assert_eq!(call.rmdir("moved/"), Ok(()));
    });
}

#[test]
fn trailing_dot_means_a_directory() {
    everywhere(|call| {
        for path in [".", "dir/.", "dir/..", "dir/sub/../"] {
            assert_eq!(call.stat(path, FOLLOW).unwrap().type_, DescriptorType::Directory, "{path}");
            assert!(call.open_to_read(path).is_ok(), "{path}");
            assert_eq!(call.mkdir(path), Err(ErrorCode::Exist), "{path}");
            assert_eq!(call.rmdir(path), Err(ErrorCode::Invalid), "{path}");
            assert_eq!(call.unlink(path), Err(ErrorCode::IsDirectory), "{path}");
            assert_eq!(call.rename(path, "x"), Err(ErrorCode::Invalid), "{path}");
            assert_eq!(call.open_to_write(path).map(drop), Err(ErrorCode::IsDirectory), "{path}");
        }
    });
}

#[test]
fn directory_handle_reaches_only_its_contents() {
    everywhere(|call| {
        let dir = call.open("dir", FOLLOW, OpenFlags::DIRECTORY, READ).unwrap();
        let mut open = |path: &str| {
            let dir = Resource::new_borrow(dir.rep());
            code(now(call.view().open_at(dir, FOLLOW, path.to_owned(), OpenFlags::empty(), READ)))
                .map(drop)
        };
        assert_eq!(open("deep.txt"), Ok(()));
        assert_eq!(open("sub"), Ok(()));
        assert_eq!(open("../file.txt"), Err(ErrorCode::NotPermitted));
    });
}

#[test]
fn open_flags_must_match_the_file_type() {
    everywhere(|call| {
        let directory =
            |call: &mut Call, path| call.open(path, FOLLOW, OpenFlags::DIRECTORY, READ).map(drop);
        assert_eq!(directory(call, "file.txt"), Err(ErrorCode::NotDirectory));
        assert_eq!(directory(call, "dir"), Ok(()));
        assert_eq!(call.open_to_read("file.txt/x").map(drop), Err(ErrorCode::NotDirectory));
        assert_eq!(call.open_to_write("dir").map(drop), Err(ErrorCode::IsDirectory));
        assert_eq!(call.open_to_read("missing").map(drop), Err(ErrorCode::NoEntry));
        assert_eq!(call.open_to_read("missing/x").map(drop), Err(ErrorCode::NoEntry));
        let dir = call.open_to_read("dir").unwrap();
        assert_eq!(
            code(call.view().read_via_stream(dir, 0)).map(drop),
            Err(ErrorCode::IsDirectory)
        );
    });
}

#[test]
fn only_preopen_is_the_root() {
    everywhere(|call| {
        let names: Vec<String> =
            call.view().get_directories().unwrap().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, [PREOPEN_NAME]);
    });
}

#[test]
fn without_mount_every_operation_on_a_path_is_refused() {
    everywhere(|call| {
        call.fs = Filesystem::closed();
        for path in ["file.txt", "dir", ".", "", "../outside/secret.txt"] {
            for outcome in every_operation(call, path) {
                assert_eq!(outcome, Err(ErrorCode::NotPermitted), "{path}");
            }
        }
        assert_eq!(std::fs::read_to_string(call.host("file.txt")).unwrap(), "inside");
        assert!(!call.host("renamed").exists() && !call.host("linked").exists());
    });
}

#[test]
fn without_mount_every_operation_on_the_root_is_refused() {
    let refused = Err(ErrorCode::NotPermitted);
    everywhere(|call| {
        call.fs = Filesystem::closed();
        let root = || Resource::<Descriptor>::new_borrow(0);
        assert_eq!(call.root().rep(), root().rep());
        let mut view = call.view();
        assert_eq!(code(now(view.stat(root()))).map(drop), refused);
        assert_eq!(code(now(view.read_directory(root()))).map(drop), refused);
        assert_eq!(code(now(view.metadata_hash(root()))).map(drop), refused);
        assert_eq!(code(now(view.sync(root()))), refused);
        assert_eq!(code(now(view.set_size(root(), 0))), refused);
        assert_eq!(code(now(view.read(root(), 1, 0))).map(drop), refused);
        assert_eq!(code(view.read_via_stream(root(), 0)).map(drop), refused);
        assert_eq!(code(view.append_via_stream(root())).map(drop), refused);
        let times = (NewTimestamp::Now, NewTimestamp::Now);
        assert_eq!(code(now(view.set_times(root(), times.0, times.1))), refused);
        assert!(now(view.is_same_object(root(), root())).unwrap());
    });
}

#[test]
fn files_are_missed_by_an_operation_and_not_by_asking_for_the_root() {
    let mut call = Call::new(Resolver::Walk, Access::ReadWrite, Quotas::default());
    call.fs = Filesystem::closed();
    let root = call.root();
    let kind = code(now(call.view().get_type(root)));
    assert_eq!(kind, Ok(DescriptorType::Directory));
    assert!(!call.fs.is_missed(), "a standard library asks at its start");
    let _ = call.open_to_read("file.txt");
    assert!(call.fs.is_missed(), "the guest has looked for a file");
    call.fs = Call::new(Resolver::Walk, Access::ReadOnly, Quotas::default()).fs;
    let _ = call.open_to_write("file.txt");
    assert!(!call.fs.is_missed(), "the mount is there, and read-only");
}

#[test]
fn moved_workspace_stays_visible() {
    everywhere(|call| {
        let (here, there) = (call.host(""), call.outer.path().join("moved"));
        std::fs::rename(&here, there).unwrap();
        std::fs::create_dir(&here).unwrap();
        std::fs::write(here.join("file.txt"), "impostor").unwrap();
        assert_eq!(call.read("file.txt").unwrap(), "inside");
    });
}

#[test]
fn mount_selects_the_best_resolver() {
    let mut call = Call::new(super::resolvers()[0], Access::ReadOnly, Quotas::default());
    let open = |path: &str| std::fs::File::open(call.host(path)).unwrap();
    let is_no_directory = Mount::new(open("file.txt")).unwrap_err();
    assert_eq!(is_no_directory.kind(), std::io::ErrorKind::NotADirectory);
    let mount = Mount::new(open("")).unwrap();
    call.fs = Filesystem::new(&mount, Access::ReadOnly, call.rules.clone(), Options::default());
    assert_eq!(call.read("file.txt").unwrap(), "inside");
    assert_eq!(call.open_to_read("../x").map(drop), Err(ErrorCode::NotPermitted));
}

#[test]
fn path_length_is_bounded() {
    everywhere(|call| {
        let longest = format!("{}no", "./".repeat(2_046) + "/");
        assert_eq!(longest.len(), 4_095);
        assert_eq!(call.stat(&longest, FOLLOW).map(drop), Err(ErrorCode::NoEntry));
        assert_eq!(call.stat(&(longest + "t"), FOLLOW).map(drop), Err(ErrorCode::NameTooLong));
    });
}

#[test]
fn released_mount_is_behind_no_root() {
    everywhere(|call| {
        call.fs.close();
        assert_eq!(call.stat("file.txt", FOLLOW).map(drop), Err(ErrorCode::NotPermitted));
        assert_eq!(call.stat(".", FOLLOW).map(drop), Err(ErrorCode::NotPermitted));
    });
}
