//! Changes of files, and their entries in the change log.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, NewTimestamp, PathFlags,
};

use super::{
    Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, READ, WRITE, code, everywhere, now,
};
use crate::MAX_TEMP_FILES;
use crate::change_log::MAX_PATHS;

#[test]
fn changes_are_recorded_once_in_order() {
    everywhere(|call| {
        call.write("new.txt", "x").unwrap();
        call.mkdir("made").unwrap();
        call.rename("new.txt", "made/moved.txt").unwrap();
        call.write("made/moved.txt", "again").unwrap();
        call.unlink("dir/deep.txt").unwrap();
        call.rmdir("dir/sub").unwrap();
        call.hard_link("file.txt", "second").unwrap();
        let expected = ["made", "made/moved.txt", "dir/deep.txt", "dir/sub", "second"];
        assert_eq!(call.fs.modified(), expected);
        assert_eq!(call.fs.modified_unlisted(), 0);
    });
}

#[test]
fn created_and_removed_file_is_no_change() {
    everywhere(|call| {
        call.write("temporary", "x").unwrap();
        call.rename("temporary", "file.txt").unwrap();
        call.mkdir("made").unwrap();
        call.write("made/x", "x").unwrap();
        call.unlink("made/x").unwrap();
        call.rmdir("made").unwrap();
        call.unlink("dir/deep.txt").unwrap();
        call.write("dir/deep.txt", "again").unwrap();
        call.unlink("dir/deep.txt").unwrap();
        assert_eq!(call.fs.modified(), ["file.txt", "dir/deep.txt"]);
    });
}

#[test]
fn creation_is_recorded_at_its_directorys_new_path() {
    everywhere(|call| {
        call.mkdir("made").unwrap();
        call.write("made/x", "x").unwrap();
        call.write("made-not", "x").unwrap();
        call.rename("made", "dir/moved").unwrap();
        assert_eq!(call.fs.modified(), ["made-not", "dir/moved/x", "dir/moved"]);
    });
}

#[test]
fn change_through_a_moved_directory_is_recorded() {
    everywhere(|call| {
        let dir = call.open("dir", FOLLOW, OpenFlags::DIRECTORY, READ).unwrap().rep();
        call.rename("dir", "elsewhere").unwrap();
        call.mkdir("dir").unwrap();
        for name in ["deep.txt", "new.txt"] {
            call.write(&format!("dir/{name}"), "of the same name").unwrap();
            let borrowed = Resource::new_borrow(dir);
            let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE;
            let file =
                code(now(call.view().open_at(borrowed, FOLLOW, name.to_owned(), flags, WRITE)))
                    .unwrap();
            assert_eq!(code(now(call.view().write(file, b"changed".to_vec(), 0))), Ok(7));
            call.unlink(&format!("dir/{name}")).unwrap();
        }
        call.rmdir("dir").unwrap();
        call.rename("elsewhere", "dir").unwrap();
        assert_eq!(fs::read_to_string(call.host("dir/deep.txt")).unwrap(), "changed");
        let modified = call.fs.modified();
        assert!(
            ["dir/deep.txt", "dir/new.txt"]
                .iter()
                .all(|path| modified.iter().any(|noted| noted == path)),
            "{modified:?}"
        );
    });
}

#[test]
fn failed_or_empty_change_is_not_recorded() {
    everywhere(|call| {
        call.open_to_write("file.txt").unwrap();
        call.read("file.txt").unwrap();
        call.unlink("missing").unwrap_err();
        call.rename("missing", "x").unwrap_err();
        call.mkdir("dir").unwrap_err();
        call.rmdir("dir").unwrap_err();
        call.write("missing/x", "x").unwrap_err();
        let exclusive =
            call.open("file.txt", FOLLOW, OpenFlags::CREATE | OpenFlags::EXCLUSIVE, WRITE);
        assert_eq!(exclusive.map(drop), Err(ErrorCode::Exist));
        assert_eq!(call.fs.modified(), [""; 0]);
    });
}

#[test]
fn truncating_open_is_a_change() {
    everywhere(|call| {
        call.open("file.txt", FOLLOW, OpenFlags::TRUNCATE, READ).unwrap();
        assert_eq!(fs::metadata(call.host("file.txt")).unwrap().len(), 0);
        assert_eq!(call.fs.modified(), ["file.txt"]);
    });
}

#[test]
fn truncating_an_empty_file_is_no_change() {
    everywhere(|call| {
        fs::write(call.host("empty"), "").unwrap();
        call.open("empty", FOLLOW, OpenFlags::TRUNCATE, WRITE).unwrap();
        assert_eq!(call.fs.modified(), [""; 0]);
    });
}

#[test]
fn change_list_is_bounded_and_counts_omissions() {
    everywhere(|call| {
        for i in 0..MAX_PATHS + 3 {
            call.mkdir(&format!("d{i}")).unwrap();
            call.table = wasmtime::component::ResourceTable::new();
        }
        assert_eq!(call.fs.modified().len(), MAX_PATHS);
        assert_eq!(call.fs.modified_unlisted(), 3);
        for i in 0..MAX_PATHS {
            call.rmdir(&format!("d{i}")).unwrap();
        }
        assert_eq!((call.fs.modified(), call.fs.modified_unlisted()), (Vec::new(), 3));
        assert!(call.fs.has_changed_anything(), "what is not listed has changed as well");
    });
}

#[test]
fn call_has_changes_even_if_undone() {
    everywhere(|call| {
        call.read("file.txt").unwrap();
        call.open_to_write("file.txt").unwrap();
        assert!(!call.fs.has_changed_anything());
        call.mkdir("made").unwrap();
        assert!(call.fs.has_changed_anything());
        call.rmdir("made").unwrap();
        assert!(!call.fs.has_changed_anything(), "an empty directory that came and went");
        call.write("made", "x").unwrap();
        call.unlink("made").unwrap();
        assert_eq!(call.fs.modified(), [""; 0]);
        assert!(call.fs.has_changed_anything(), "somebody may have read what was written");
    });
}

#[test]
fn write_to_an_existing_file_is_recorded_afterwards() {
    everywhere(|call| {
        let file = call.open("file.txt", FOLLOW, OpenFlags::empty(), WRITE).unwrap();
        assert_eq!(call.fs.modified(), [""; 0]);
        assert_eq!(code(now(call.view().write(file, b"IN".to_vec(), 0))), Ok(2));
        assert_eq!(call.fs.modified(), ["file.txt"]);
    });
}

#[test]
fn unfinished_file_of_a_stopped_call_is_removed() {
    const BEGUN: &str = "begun.tmp";
    let others = ["tmp", "begun.tmp.txt"];
    everywhere(|call| {
        fs::write(call.host("dir").join(BEGUN), "the user's").unwrap();
        for path in
            [BEGUN, &format!("dir/sub/{BEGUN}"), &format!("dir/{BEGUN}")].into_iter().chain(others)
        {
            call.write(path, "x").unwrap();
        }
        call.fs.remove_temp_files(|name| name.ends_with(".tmp"));
        assert!(!call.host(BEGUN).exists() && !call.host("dir/sub").join(BEGUN).exists());
        let kept = format!("dir/{BEGUN}");
        let mut expected = vec![kept.as_str()];
        expected.extend(others);
        assert_eq!(call.fs.modified(), expected);
        assert!(expected.iter().all(|path| call.host(path).exists()));
    });
}

#[test]
fn last_temporary_files_of_a_stopped_call_are_removed_and_no_more() {
    everywhere(|call| {
        let name = |number: usize| format!("{number}.tmp");
        for number in 0..MAX_TEMP_FILES + 2 {
            call.write(&name(number), "x").unwrap();
        }
        call.fs.remove_temp_files(|name| name.ends_with(".tmp"));
        assert_eq!(call.fs.modified(), [name(0), name(1)]);
        assert!(call.host(&name(1)).exists() && !call.host(&name(2)).exists());
    });
}

/// A plugin may keep an old version under such a name until the new one is complete.
#[test]
fn file_that_a_stopped_call_has_moved_to_a_temporary_name_stays() {
    everywhere(|call| {
        call.rename("file.txt", "moved.tmp").unwrap();
        call.write("made.tmp", "x").unwrap();
        fs::remove_file(call.host("made.tmp")).unwrap();
        fs::write(call.host("other"), "of another program").unwrap();
        fs::rename(call.host("other"), call.host("made.tmp")).unwrap();
        call.fs.remove_temp_files(|name| name.ends_with(".tmp"));
        assert!(call.host("moved.tmp").exists() && call.host("made.tmp").exists());
        assert!(call.fs.modified().contains(&"moved.tmp".to_owned()));
    });
}

#[test]
fn move_of_a_large_tree_yields_and_is_not_made_after_its_call() {
    everywhere(|call| {
        for number in 0..100 {
            fs::create_dir(call.host("dir/sub").join(number.to_string())).unwrap();
        }
        call.mkdir("other").unwrap();
        let polls = |call: &mut Call, most: usize| {
            let (from, to) = (call.root(), call.root());
            let mut view = call.view();
            let moving = view.rename_at(from, "dir".to_owned(), to, "other/dir".to_owned());
            let mut moving = pin!(moving);
            let mut context = Context::from_waker(Waker::noop());
            (0..most).find(|_| moving.as_mut().poll(&mut context).is_ready())
        };
        assert_eq!(polls(call, 3), None, "100 entries are more than three parts");
        assert!(call.host("dir/sub/0").exists(), "the call was over before the move");
        assert!(polls(call, 10).is_some());
        assert!(call.host("other/dir/sub/99").exists());
    });
}

#[test]
fn new_file_has_the_usual_permissions() {
    everywhere(|call| {
        call.write("guest", "").unwrap();
        fs::write(call.host("host"), "").unwrap();
        let mode = |name| fs::metadata(call.host(name)).unwrap().mode();
        assert_eq!(mode("guest"), mode("host"));
    });
}

#[test]
fn times_are_set_on_files_directories_and_links() {
    everywhere(|call| {
        call.link("link", "file.txt");
        let at =
            |seconds| NewTimestamp::Timestamp(Datetime { seconds, nanoseconds: 1_500_000_000 });
        let mut set = |flags, path: &str, time| {
            let root = call.root();
            code(now(call.view().set_times_at(
                root,
                flags,
                path.to_owned(),
                NewTimestamp::NoChange,
                time,
            )))
        };
        assert_eq!(set(FOLLOW, "link", at(1_000)), Ok(()));
        assert_eq!(set(PathFlags::empty(), "link", at(2_000)), Ok(()));
        assert_eq!(set(FOLLOW, "dir", at(3_000)), Ok(()));
        assert_eq!(set(FOLLOW, "file.txt", at(u64::MAX)), Err(ErrorCode::Overflow));
        assert_eq!(set(FOLLOW, "missing", at(1)), Err(ErrorCode::NoEntry));
        assert_eq!(set(FOLLOW, "file.txt", at(i64::MAX.unsigned_abs())), Err(ErrorCode::Overflow));
        let modified = |name| fs::symlink_metadata(call.host(name)).unwrap().modified().unwrap();
        let time = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::new(seconds + 1, 500_000_000);
        assert_eq!(["file.txt", "link", "dir"].map(modified), [1_000, 2_000, 3_000].map(time));
        assert_eq!(call.fs.modified(), ["file.txt", "link", "dir"]);
    });
}

#[test]
fn times_of_open_handles_are_set() {
    everywhere(|call| {
        let at = NewTimestamp::Timestamp(Datetime { seconds: 77, nanoseconds: 0 });
        let file = call.open_to_read("file.txt").unwrap();
        code(now(call.view().set_times(file, at, NewTimestamp::Now))).unwrap();
        let root = call.root();
        code(now(call.view().set_times(root, NewTimestamp::NoChange, at))).unwrap();
        assert_eq!(call.fs.modified(), ["file.txt", "."]);
        assert_eq!(fs::metadata(call.host("file.txt")).unwrap().atime(), 77);
        assert_eq!(fs::metadata(call.host("")).unwrap().mtime(), 77);
        assert_eq!(
            call.stat(".", FOLLOW).unwrap().data_modification_timestamp.unwrap().seconds,
            77
        );
    });
}

#[test]
fn metadata_equals_the_hosts() {
    everywhere(|call| {
        call.hard_link("file.txt", "second").unwrap();
        let stat = call.stat("file.txt", FOLLOW).unwrap();
        let host = fs::metadata(call.host("file.txt")).unwrap();
        assert_eq!((stat.size, stat.link_count), (6, 2));
        assert_eq!(stat.data_modification_timestamp.unwrap().seconds, host.mtime().unsigned_abs());
        let file = call.open_to_read("file.txt").unwrap().rep();
        let handle = code(now(call.view().stat(Resource::new_borrow(file)))).unwrap();
        assert_eq!((handle.size, handle.type_), (6, DescriptorType::RegularFile));
        assert_eq!(
            code(now(call.view().get_type(Resource::new_borrow(file)))),
            Ok(DescriptorType::RegularFile)
        );
    });
}

#[test]
fn file_identity_is_the_same_under_every_name() {
    everywhere(|call| {
        call.hard_link("file.txt", "second").unwrap();
        let mut hash = |path: &str| {
            let root = call.root();
            let hash =
                code(now(call.view().metadata_hash_at(root, FOLLOW, path.to_owned()))).unwrap();
            (hash.lower, hash.upper)
        };
        assert_eq!(hash("file.txt"), hash("second"));
        assert_ne!(hash("file.txt"), hash("dir/deep.txt"));
        let expected = hash("file.txt");
        let open = |call: &mut Call, path: &str| call.open_to_read(path).unwrap();
        let (a, b, c) = (open(call, "file.txt"), open(call, "second"), open(call, "dir"));
        let of = |fd: &Resource<_>| Resource::new_borrow(fd.rep());
        let by_handle = code(now(call.view().metadata_hash(of(&a)))).unwrap();
        assert_eq!((by_handle.lower, by_handle.upper), expected);
        assert!(now(call.view().is_same_object(of(&a), of(&b))).unwrap());
        assert!(!now(call.view().is_same_object(of(&a), of(&c))).unwrap());
    });
}

#[test]
fn changed_file_can_be_synced() {
    everywhere(|call| {
        let file = call.open_to_write("file.txt").unwrap().rep();
        code(now(call.view().write(Resource::new_borrow(file), b"x".to_vec(), 0))).unwrap();
        assert_eq!(code(now(call.view().sync_data(Resource::new_borrow(file)))), Ok(()));
        assert_eq!(code(now(call.view().sync(Resource::new_borrow(file)))), Ok(()));
        let root = call.root();
        assert_eq!(code(now(call.view().sync(root))), Ok(()));
    });
}

#[test]
fn synchronised_open_is_unsupported() {
    everywhere(|call| {
        let synchronised = call.open(
            "file.txt",
            FOLLOW,
            OpenFlags::empty(),
            READ | DescriptorFlags::FILE_INTEGRITY_SYNC,
        );
        assert_eq!(synchronised.map(drop), Err(ErrorCode::Unsupported));
        let contradiction =
            call.open("dir", FOLLOW, OpenFlags::DIRECTORY | OpenFlags::CREATE, READ);
        assert_eq!(contradiction.map(drop), Err(ErrorCode::Invalid));
    });
}

#[test]
fn handle_reports_its_access() {
    everywhere(|call| {
        let opened = [READ, WRITE, READ | WRITE].map(|flags| {
            let file = call.open("file.txt", FOLLOW, OpenFlags::empty(), flags).unwrap();
            (code(now(call.view().get_flags(file))).unwrap(), flags)
        });
        assert!(opened.iter().all(|(told, asked)| told == asked), "{opened:?}");
        let root = call.root();
        let told = code(now(call.view().get_flags(root)));
        assert_eq!(told, Ok(READ | DescriptorFlags::MUTATE_DIRECTORY));
    });
}

#[test]
fn dropped_handle_ends_the_call() {
    everywhere(|call| {
        let file = call.open_to_read("file.txt").unwrap().rep();
        HostDescriptor::drop(&mut call.view(), Resource::new_own(file)).unwrap();
        let outcome = now(call.view().stat(Resource::new_borrow(file)));
        assert!(outcome.unwrap_err().downcast().is_err());
    });
}
