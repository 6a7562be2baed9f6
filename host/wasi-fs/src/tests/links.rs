//! Symbolic links of every kind that other programs have created in the workspace.

use std::fs;

use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, PathFlags};

use super::{
    Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, READ, WRITE, code, everywhere, now,
};

#[test]
fn link_inside_is_followed() {
    everywhere(|call| {
        call.link("to_file", "file.txt");
        call.link("to_dir", "dir");
        call.link("dir/sub/up", "../../file.txt");
        call.link("chain", "to_dir/sub/up");
        call.link("slash", "dir/");
        for (path, text) in [
            ("to_file", "inside"),
            ("to_dir/deep.txt", "deep"),
            ("dir/sub/up", "inside"),
            ("chain", "inside"),
            ("to_dir/sub/up", "inside"),
            ("to_dir/../file.txt", "inside"),
            ("slash/deep.txt", "deep"),
        ] {
            assert_eq!(call.read(path).unwrap_or_else(|code| panic!("{path}: {code}")), text);
            assert_eq!(
                call.stat(path, FOLLOW).unwrap().type_,
                DescriptorType::RegularFile,
                "{path}"
            );
        }
        assert!(!call.fs.refused());
    });
}

#[test]
fn link_outside_is_refused_anywhere_in_a_path() {
    everywhere(|call| {
        let outside = call.outer.path().join("outside");
        call.link("up", "..");
        call.link("relative", "../outside");
        call.link("absolute", &outside);
        call.link("file", "../outside/secret.txt");
        call.link("absolute_file", outside.join("secret.txt"));
        call.link("dir/far", "../../outside");
        call.link("chain", "dir/far");
        call.link("slash", "../outside/");
        call.link("proc", "/proc/self/root");
        let through = [
            "up/outside/secret.txt",
            "relative/secret.txt",
            "absolute/secret.txt",
            "dir/far/secret.txt",
        ];
        let more = [
            "chain/secret.txt",
            "slash/secret.txt",
            "proc/etc/hostname",
            "file",
            "absolute_file",
            "relative/",
            "up/",
        ];
        for path in through.into_iter().chain(more) {
            assert_eq!(call.read(path), Err(ErrorCode::NotPermitted), "{path}");
            assert_eq!(call.stat(path, FOLLOW).map(drop), Err(ErrorCode::NotPermitted), "{path}");
            assert_eq!(call.open_to_write(path).map(drop), Err(ErrorCode::NotPermitted), "{path}");
        }
        assert!(call.fs.refused());
        assert_eq!(call.secret(), "secret");
    });
}

#[test]
fn changes_through_an_outside_link_are_refused() {
    everywhere(|call| {
        call.link("out", "../outside");
        assert_eq!(call.write("out/new.txt", "x"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.mkdir("out/new"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.unlink("out/secret.txt"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.rmdir("out/x"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.rename("out/secret.txt", "mine"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.rename("file.txt", "out/secret.txt"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.hard_link("out/secret.txt", "mine"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.hard_link("file.txt", "out/mine"), Err(ErrorCode::NotPermitted));
        assert_eq!(
            call.stat("out/secret.txt", PathFlags::empty()).map(drop),
            Err(ErrorCode::NotPermitted)
        );
        assert_eq!(fs::read_dir(call.outer.path().join("outside")).unwrap().count(), 1);
        assert_eq!(call.fs.modified(), [""; 0]);
    });
}

#[test]
fn unfollowed_link_is_inspected_and_not_opened() {
    everywhere(|call| {
        call.link("out", "../outside/secret.txt");
        call.link("in", "file.txt");
        for path in ["out", "in"] {
            assert_eq!(
                call.stat(path, PathFlags::empty()).unwrap().type_,
                DescriptorType::SymbolicLink
            );
            let opened = call.open(path, PathFlags::empty(), OpenFlags::empty(), READ).map(drop);
            assert_eq!(opened, Err(ErrorCode::Loop), "{path}");
            let written = call.open(path, PathFlags::empty(), OpenFlags::CREATE, WRITE).map(drop);
            assert_eq!(written, Err(ErrorCode::Loop), "{path}");
            let exclusive =
                call.open(path, FOLLOW, OpenFlags::CREATE | OpenFlags::EXCLUSIVE, WRITE).map(drop);
            assert_eq!(exclusive, Err(ErrorCode::Exist), "{path}");
        }
    });
}

#[test]
fn circular_links_are_an_error() {
    everywhere(|call| {
        call.link("self", "self");
        call.link("a", "b");
        call.link("b", "a");
        call.link("grow", "grow/x/y");
        for path in ["self", "a", "a/x", "grow", "self/", "grow/z"] {
            assert_eq!(call.read(path), Err(ErrorCode::Loop), "{path}");
            assert_eq!(call.stat(path, FOLLOW).map(drop), Err(ErrorCode::Loop), "{path}");
        }
    });
}

#[test]
fn at_most_forty_links_are_followed() {
    everywhere(|call| {
        call.link("l0", "file.txt");
        for i in 1..=40 {
            call.link(&format!("l{i}"), format!("l{}", i - 1));
        }
        assert_eq!(call.read("l39").unwrap(), "inside");
        assert_eq!(call.read("l40"), Err(ErrorCode::Loop));
    });
}

#[test]
fn dangling_link_is_missing_or_creates_its_target() {
    everywhere(|call| {
        call.link("dangling", "dir/new.txt");
        call.link("dangling_out", "../outside/new.txt");
        assert_eq!(call.read("dangling"), Err(ErrorCode::NoEntry));
        assert_eq!(call.write("dangling", "made"), Ok(()));
        assert_eq!(fs::read_to_string(call.host("dir/new.txt")).unwrap(), "made");
        assert_eq!(call.fs.modified(), ["dir/new.txt"]);
        assert_eq!(call.write("dangling_out", "x"), Err(ErrorCode::NotPermitted));
        assert!(!call.outer.path().join("outside/new.txt").exists());
    });
}

#[test]
fn slash_after_a_link_means_its_directory() {
    everywhere(|call| {
        call.link("to_dir", "dir");
        call.link("to_file", "file.txt");
        call.link("file_slash", "file.txt/");
        assert_eq!(
            call.stat("to_dir/", PathFlags::empty()).unwrap().type_,
            DescriptorType::Directory
        );
        assert!(call.open("to_dir/", PathFlags::empty(), OpenFlags::empty(), READ).is_ok());
        assert_eq!(
            call.stat("to_file/", PathFlags::empty()).map(drop),
            Err(ErrorCode::NotDirectory)
        );
        assert_eq!(call.open_to_read("to_file/").map(drop), Err(ErrorCode::NotDirectory));
        assert_eq!(call.open_to_read("file_slash").map(drop), Err(ErrorCode::NotDirectory));
        assert_eq!(call.open_to_write("file_slash").map(drop), Err(ErrorCode::NotDirectory));
        assert_eq!(call.stat("file_slash", FOLLOW).map(drop), Err(ErrorCode::NotDirectory));
        assert_eq!(call.unlink("to_dir/"), Err(ErrorCode::NotDirectory));
        assert_eq!(call.rmdir("to_dir/"), Err(ErrorCode::NotDirectory));
        assert_eq!(call.rename("to_dir/", "x"), Err(ErrorCode::NotDirectory));
        assert!(call.host("dir/deep.txt").exists());
    });
}

#[test]
fn removing_or_moving_a_link_affects_only_the_link() {
    everywhere(|call| {
        call.link("out", "../outside");
        call.link("in", "file.txt");
        assert_eq!(call.rename("out", "moved"), Ok(()));
        assert_eq!(call.unlink("moved"), Ok(()));
        assert_eq!(call.unlink("in"), Ok(()));
        assert_eq!(call.read("file.txt").unwrap(), "inside");
        assert_eq!(call.secret(), "secret");
        assert_eq!(call.fs.modified(), ["out", "in"]);
    });
}

#[test]
fn link_creation_is_refused() {
    everywhere(|call| {
        call.link("in", "dir");
        let root = call.root();
        let made =
            code(now(call.view().symlink_at(root, "file.txt".to_owned(), "link".to_owned())));
        assert_eq!(made, Err(ErrorCode::NotPermitted));
        assert_eq!(call.hard_link("in", "link"), Err(ErrorCode::NotPermitted));
        let (from, to) = (call.root(), call.root());
        let followed =
            now(call.view().link_at(from, FOLLOW, "in".to_owned(), to, "link".to_owned()));
        assert_eq!(code(followed), Err(ErrorCode::Invalid));
        assert!(call.host("link").symlink_metadata().is_err());
        assert!(call.fs.refused());
    });
}

#[test]
fn readlink_hides_host_paths() {
    everywhere(|call| {
        call.link("in", "dir/deep.txt");
        let outside = call.outer.path().join("outside");
        call.link("absolute", outside);
        assert_eq!(call.read_link("in").unwrap(), "dir/deep.txt");
        assert_eq!(call.read_link("absolute"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.read_link("file.txt"), Err(ErrorCode::Invalid));
    });
}

#[test]
fn change_through_a_link_is_recorded_by_real_name() {
    everywhere(|call| {
        call.link("to_dir", "dir");
        call.link("to_file", "file.txt");
        call.write("to_dir/new.txt", "x").unwrap();
        call.write("to_file", "x").unwrap();
        call.mkdir("to_dir/../dir/./made").unwrap();
        let dir = call.open("to_dir", FOLLOW, OpenFlags::DIRECTORY, READ).unwrap();
        code(now(call.view().create_directory_at(dir, "sub/below".to_owned()))).unwrap();
        assert_eq!(call.fs.modified(), ["dir/new.txt", "file.txt", "dir/made", "dir/sub/below"]);
    });
}

#[test]
fn expensive_path_is_refused() {
    everywhere(|call| {
        call.link("to_dir", "dir");
        // Each `..` walks down again from the start, so this would open a million directories.
        let mut deep = call.host("deep");
        for _ in 0..150 {
            deep = deep.join("d");
        }
        fs::create_dir_all(&deep).unwrap();
        let path = format!("to_dir/../deep/{}{}", "d/".repeat(149), "../d/".repeat(600));
        assert_eq!(call.open_to_read(&path).map(drop), Err(ErrorCode::NameTooLong));
    });
}

/// Repeatedly swaps a directory for a link that leads out, while a guest opens and writes through
/// it.
#[test]
fn link_swapped_in_during_resolution_cannot_escape() {
    everywhere(|call| {
        let (dir, aside, link) = (call.host("swap"), call.host("aside"), call.host("link"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("secret.txt"), "inside").unwrap();
        std::os::unix::fs::symlink("../outside", &link).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = fs::rename(&dir, &aside).and_then(|()| fs::rename(&link, &dir));
                    let _ = fs::rename(&dir, &link).and_then(|()| fs::rename(&aside, &dir));
                }
            });
            attack(call);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(call.secret(), "secret");
        assert_eq!(fs::read_dir(call.outer.path().join("outside")).unwrap().count(), 1);
    });
}

fn attack(call: &mut Call) {
    for _ in 0..2_000 {
        if let Ok(text) = call.read("swap/secret.txt") {
            assert_eq!(text, "inside");
        }
        let _ = call.open("swap/new.txt", FOLLOW, OpenFlags::CREATE, WRITE);
        let _ = call.unlink("swap/new.txt");
        let _ = call.mkdir("swap/new");
        let _ = call.rmdir("swap/new");
        call.table = wasmtime::component::ResourceTable::new();
    }
}
