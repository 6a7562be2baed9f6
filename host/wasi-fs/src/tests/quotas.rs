//! Quotas: for each one a call within it and a call beyond it.

use std::fs;

use super::{
    Access, Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, Quotas, WRITE, code, now,
    read_some, resolvers, write_some,
};
use crate::Exhausted;
use wasmtime::component::Resource;

fn limited(quotas: Quotas, test: impl Fn(&mut Call)) {
    for resolver in resolvers() {
        test(&mut Call::new(resolver, Access::ReadWrite, quotas));
    }
}

#[test]
fn reading_up_to_the_quota_is_allowed() {
    limited(Quotas { read_bytes: 12, ..Quotas::default() }, |call| {
        assert_eq!(call.read("file.txt").unwrap(), "inside");
        assert_eq!(call.read("file.txt").unwrap(), "inside");
        assert_eq!((call.fs.bytes_read(), call.fs.exhausted()), (12, None));
    });
}

#[test]
fn reading_beyond_the_quota_is_refused() {
    limited(Quotas { read_bytes: 11, ..Quotas::default() }, |call| {
        assert_eq!(call.read("file.txt").unwrap(), "inside");
        assert_eq!(call.read("file.txt"), Err(ErrorCode::Quota));
        assert_eq!(call.fs.bytes_read(), 11);
        assert_eq!(call.fs.exhausted(), Some(Exhausted::ReadBytes(11)));
        assert!(!call.fs.refused());
    });
}

#[test]
fn positioned_reads_count() {
    limited(Quotas { read_bytes: 8, ..Quotas::default() }, |call| {
        let rep = call.open_to_read("file.txt").unwrap().rep();
        let mut read =
            |len, offset| code(now(call.view().read(Resource::new_borrow(rep), len, offset)));
        assert_eq!(read(0, 0), Ok((Vec::new(), false)));
        assert_eq!(read(100, 0), Ok((b"inside".to_vec(), false)));
        assert_eq!(read(100, 6), Ok((Vec::new(), true)));
        assert_eq!(read(100, u64::MAX), Err(ErrorCode::Invalid));
        assert_eq!(read(u64::MAX, 0), Ok((b"in".to_vec(), false)));
        assert_eq!(read(1, 2), Err(ErrorCode::Quota));
        assert_eq!(call.fs.exhausted(), Some(Exhausted::ReadBytes(8)));
    });
}

#[test]
fn writing_up_to_the_quota_is_allowed() {
    limited(Quotas { write_bytes: 10, ..Quotas::default() }, |call| {
        assert_eq!(call.write("new.txt", "0123456789"), Ok(()));
        assert_eq!((call.fs.bytes_written(), call.fs.exhausted()), (10, None));
        assert_eq!(fs::read_to_string(call.host("new.txt")).unwrap(), "0123456789");
    });
}

#[test]
fn writing_beyond_the_quota_closes_the_stream() {
    limited(Quotas { write_bytes: 10, ..Quotas::default() }, |call| {
        let file = call.open("new.txt", FOLLOW, OpenFlags::CREATE, WRITE).unwrap();
        let stream = code(call.view().append_via_stream(file)).unwrap();
        let stream = call.table.get_mut(&stream).unwrap();
        assert_eq!(write_some(stream, "01234567"), Ok(()));
        assert_eq!(write_some(stream, "89a"), Err(ErrorCode::Quota));
        assert!(stream.check_write().is_err());
        assert_eq!(fs::read_to_string(call.host("new.txt")).unwrap(), "01234567");
        assert_eq!(call.fs.bytes_written(), 8);
        assert_eq!(call.fs.exhausted(), Some(Exhausted::WriteBytes(10)));
        assert_eq!(call.fs.modified(), ["new.txt"]);
    });
}

#[test]
fn hole_counts_as_written() {
    limited(Quotas { write_bytes: 1_000, ..Quotas::default() }, |call| {
        let rep = call.open_to_write("file.txt").unwrap().rep();
        let file = || Resource::new_borrow(rep);
        assert_eq!(code(now(call.view().set_size(file(), 506))), Ok(()));
        assert_eq!(code(now(call.view().write(file(), b"end".to_vec(), 900))), Ok(3));
        assert_eq!(call.fs.bytes_written(), 3);
        assert_eq!(code(now(call.view().set_size(file(), 1 << 62))), Err(ErrorCode::Quota));
        assert_eq!(
            code(now(call.view().write(file(), b"x".to_vec(), 1 << 40))),
            Err(ErrorCode::Quota)
        );
        assert_eq!(
            code(now(call.view().write(file(), b"x".to_vec(), u64::MAX))),
            Err(ErrorCode::FileTooLarge)
        );
        assert_eq!(fs::metadata(call.host("file.txt")).unwrap().len(), 903);
        // 500 + 394 bytes of holes and 3 bytes written leave 103.
        assert_eq!(code(now(call.view().set_size(file(), 1_007))), Err(ErrorCode::Quota));
        assert_eq!(code(now(call.view().set_size(file(), 1_006))), Ok(()));
    });
}

#[test]
fn overwriting_and_shrinking_add_no_hole() {
    limited(Quotas { write_bytes: 6, ..Quotas::default() }, |call| {
        let rep = call.open_to_write("file.txt").unwrap().rep();
        let file = || Resource::new_borrow(rep);
        assert_eq!(code(now(call.view().set_size(file(), 2))), Ok(()));
        assert_eq!(code(now(call.view().write(file(), b"side".to_vec(), 2))), Ok(4));
        assert_eq!(code(now(call.view().write(file(), b"in".to_vec(), 0))), Ok(2));
        assert_eq!(call.fs.exhausted(), None);
        assert_eq!(code(now(call.view().write(file(), b"x".to_vec(), 0))), Err(ErrorCode::Quota));
        assert_eq!(fs::read_to_string(call.host("file.txt")).unwrap(), "inside");
    });
}

#[test]
fn refused_growth_is_refunded() {
    limited(Quotas { write_bytes: u64::MAX, ..Quotas::default() }, |call| {
        let rep = call.open_to_write("file.txt").unwrap().rep();
        for _ in 0..2 {
            assert_eq!(
                code(now(call.view().set_size(Resource::new_borrow(rep), u64::MAX))),
                Err(ErrorCode::Invalid)
            );
        }
        assert_eq!(call.fs.exhausted(), None);
    });
}

#[test]
fn entries_beyond_the_quota_are_refused() {
    limited(Quotas { new_entries: 3, ..Quotas::default() }, |call| {
        assert_eq!(call.mkdir("made"), Ok(()));
        assert_eq!(call.mkdir("made"), Err(ErrorCode::Exist));
        assert_eq!(call.hard_link("file.txt", "linked"), Ok(()));
        assert_eq!(call.write("new.txt", ""), Ok(()));
        assert_eq!(call.write("new.txt", "again"), Ok(()));
        assert_eq!(call.rename("new.txt", "renamed"), Ok(()));
        assert_eq!(call.fs.exhausted(), None);
        assert_eq!(call.mkdir("another"), Err(ErrorCode::Quota));
        assert_eq!(call.write("another", ""), Err(ErrorCode::Quota));
        assert_eq!(call.hard_link("file.txt", "another"), Err(ErrorCode::Quota));
        assert!(!call.host("another").exists());
        assert_eq!(call.fs.exhausted(), Some(Exhausted::NewEntries(3)));
    });
}

#[test]
fn reading_a_missing_file_creates_nothing() {
    limited(Quotas { new_entries: 0, ..Quotas::default() }, |call| {
        assert_eq!(call.read("missing"), Err(ErrorCode::NoEntry));
        assert_eq!(call.fs.exhausted(), None);
        assert_eq!(call.write("missing", ""), Err(ErrorCode::Quota));
    });
}

#[test]
fn read_ends_at_the_quota_within_one_call() {
    limited(Quotas { read_bytes: 4, ..Quotas::default() }, |call| {
        let file = call.open_to_read("file.txt").unwrap();
        let stream = code(call.view().read_via_stream(file, 0)).unwrap();
        let stream = call.table.get_mut(&stream).unwrap();
        assert_eq!(read_some(stream, 1 << 20), Ok(Some(b"insi".to_vec())));
        assert_eq!(read_some(stream, 1 << 20), Err(ErrorCode::Quota));
    });
}

/// Creates `name` with one directory inside another, `depth` of them with it.
fn nested(call: &mut Call, name: &str, depth: usize) {
    fs::create_dir_all(call.host(name).join(vec!["in"; depth - 1].join("/"))).unwrap();
}

#[test]
fn directory_depth_is_bounded() {
    limited(Quotas { depth: 3, ..Quotas::default() }, |call| {
        call.mkdir("dir/sub/third").unwrap();
        assert_eq!(call.mkdir("dir/sub/third/fourth"), Err(ErrorCode::Quota));
        assert_eq!(call.open_to_write("dir/sub/third/file").map(drop), Err(ErrorCode::Quota));
        assert_eq!(call.rename("file.txt", "dir/sub/third/file"), Err(ErrorCode::Quota));
        assert_eq!(call.rename("file.txt", "dir/sub/file"), Ok(()));
        assert_eq!(call.fs.exhausted(), Some(Exhausted::Depth(3)));
    });
}

#[test]
fn moved_tree_depth_is_bounded() {
    limited(Quotas { depth: 4, ..Quotas::default() }, |call| {
        nested(call, "two", 2);
        nested(call, "three", 3);
        assert_eq!(call.rename("three", "dir/sub/three"), Err(ErrorCode::Quota));
        assert_eq!(call.fs.exhausted(), Some(Exhausted::Depth(4)));
        assert!(call.host("three/in/in").is_dir() && !call.host("dir/sub/three").exists());
        assert_eq!(call.rename("two", "dir/sub/two"), Ok(()));
        assert_eq!(call.rename("dir/sub/two", "dir/sub/other"), Ok(()));
        assert_eq!(call.rename("three", "dir/three"), Ok(()));
        // A file counts like a directory.
        fs::create_dir(call.host("file")).unwrap();
        fs::write(call.host("file/x"), "x").unwrap();
        assert_eq!(call.rename("file", "dir/sub/other/file"), Err(ErrorCode::Quota));
    });
}

#[test]
fn moving_a_tree_counts_as_listing() {
    limited(Quotas { listed_entries: 3, ..Quotas::default() }, |call| {
        fs::create_dir(call.host("many")).unwrap();
        (0..4).for_each(|number| fs::write(call.host(&format!("many/{number}")), "x").unwrap());
        assert_eq!(call.rename("many", "beside"), Ok(()), "the depth stays the same");
        assert_eq!(call.rename("beside", "dir/many"), Err(ErrorCode::Quota));
        assert_eq!(call.fs.exhausted(), Some(Exhausted::ListedEntries(3)));
    });
}

#[test]
fn moved_directory_has_its_new_depth() {
    limited(Quotas { depth: 3, ..Quotas::default() }, |call| {
        fs::create_dir(call.host("made")).unwrap();
        let dir = call.open("made", FOLLOW, OpenFlags::DIRECTORY, super::READ).unwrap().rep();
        let made = |call: &mut Call, name: &str| {
            code(now(call.view().create_directory_at(Resource::new_borrow(dir), name.to_owned())))
        };
        assert_eq!(made(call, "before"), Ok(()));
        call.rmdir("made/before").unwrap();
        call.rename("made", "dir/sub/made").unwrap();
        assert_eq!(made(call, "after"), Err(ErrorCode::Quota));
        let (mut view, name) = (call.view(), "x".to_owned());
        let opened = code(now(view.open_at(
            Resource::new_borrow(dir),
            FOLLOW,
            name,
            OpenFlags::CREATE,
            WRITE,
        )));
        assert_eq!(opened.map(drop), Err(ErrorCode::Quota));
        assert_eq!(fs::read_dir(call.host("dir/sub/made")).unwrap().count(), 0);
    });
}

#[test]
fn hard_link_depth_is_bounded() {
    limited(Quotas { depth: 2, ..Quotas::default() }, |call| {
        assert_eq!(call.hard_link("file.txt", "dir/linked"), Ok(()));
        assert_eq!(call.hard_link("file.txt", "dir/sub/linked"), Err(ErrorCode::Quota));
        assert_eq!(call.fs.exhausted(), Some(Exhausted::Depth(2)));
    });
}

#[test]
fn quotas_of_the_options_apply() {
    for depth in [1, 7] {
        let quotas = Quotas { depth, ..Quotas::default() };
        let call = Call::strict(resolvers()[0], Access::ReadWrite, quotas);
        let usage = &call.fs.usage;
        assert!(usage.check_depth(depth).is_ok() && usage.check_depth(depth + 1).is_err());
    }
}
