//! Protected trees: no operation changes them under any name, wherever they have moved.

mod several;
mod ways;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::types::NewTimestamp;

use super::{
    Access, Call, Descriptor, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, Quotas, READ, WRITE,
    code, everywhere, now, resolvers, write_some,
};
use crate::sandbox::guard::Refusal;
use crate::workspace::{HardLinks, HostRules, Reading, Tree};

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
    call.keep(HostRules { hard_links: HardLinks::Allow, ..HostRules::default() });
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
    assert_eq!(call.guard.modified(), [""; 0], "{path}");
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

#[test]
fn nothing_is_changed_in_a_repository_at_any_depth_and_in_any_case() {
    everywhere(|call| {
        repositories(call);
        for path in [
            ".git/config",
            ".git/new",
            ".git/hooks",
            ".git/hooks/post-commit",
            ".git",
            "sub/.git/config",
            "sub/.GIT/config",
            "sub/.gIt/x",
            "sub/.git/hooks/pre-commit.sample",
            "sub/../sub/.git/config",
            "dir/../.git/config",
            ".//.git//config",
            "tree/.git",
            "new/.git",
            "dir/.git",
            "dir/.GIT",
            "dir/git~1",
            "dir/.git.",
            "dir/.g\u{200c}it",
            "dir/.g\u{ad}it",
        ] {
            nothing_changes(call, path);
        }
        assert_eq!(call.guard.refusal().and_then(Refusal::tree).map(|tree| &**tree), Some(".git"));
    });
}

#[test]
fn a_repository_is_read_like_anything_else() {
    everywhere(|call| {
        repositories(call);
        for path in [".git/config", "sub/.git/config", "sub/.GIT/config"] {
            assert_eq!(call.read(path).unwrap(), "[core]", "{path}");
        }
        assert_eq!(call.read("tree/.git").unwrap(), "gitdir: ../.git/worktrees/tree");
        assert!(!call.guard.refused());
    });
}

#[test]
fn names_that_only_look_like_a_repository_are_free() {
    everywhere(|call| {
        repositories(call);
        for path in [".gitignore", "sub/.gitattributes", "git", "dir/x.git"] {
            call.write(path, "x").unwrap();
        }
        call.mkdir(".github").unwrap();
        call.write("sub/file", "x").unwrap();
        assert!(!call.guard.refused());
    });
}

#[test]
fn a_link_into_a_repository_opens_no_way() {
    everywhere(|call| {
        repositories(call);
        call.link("innocent", "sub/.git");
        call.link("config", ".git/config");
        call.link("dir/up", "..");
        call.link("dangling", ".git/new");
        for path in ["innocent/config", "innocent/new", "innocent/hooks/new", "dir/up/.git/config"]
        {
            nothing_changes(call, path);
        }
        for path in ["config", "dangling"] {
            for open in [OpenFlags::CREATE, OpenFlags::TRUNCATE | OpenFlags::CREATE] {
                assert_eq!(call.open(path, FOLLOW, open, WRITE).map(drop), REFUSED, "{path}");
            }
        }
        assert!(!call.host(".git/new").exists());
        assert_eq!(call.read("config").unwrap(), "[core]");
    });
}

#[test]
fn a_repository_behind_a_link_or_a_file_is_protected_under_its_own_name() {
    for resolver in resolvers() {
        for by_file in [false, true] {
            let mut call = Call::new(resolver, Access::ReadWrite, Quotas::default());
            fs::create_dir(call.host("meta")).unwrap();
            fs::write(call.host("meta/config"), "[core]").unwrap();
            if by_file {
                fs::write(call.host(".git"), "gitdir: meta\n").unwrap();
            } else {
                symlink("meta", call.host(".git")).unwrap();
            }
            call.keep(HostRules { hard_links: HardLinks::Allow, ..HostRules::default() });
            nothing_changes(&mut call, "meta/config");
            nothing_changes(&mut call, ".git/config");
            assert_eq!(call.rename("meta", "other"), REFUSED);
        }
    }
}

#[test]
fn a_directory_that_holds_a_repository_may_be_moved_and_takes_its_protection_along() {
    everywhere(|call| {
        repositories(call);
        assert_eq!(call.rename("sub", "other"), Ok(()));
        call.again();
        nothing_changes(call, "other/.git/config");
        call.write("other/file", "x").unwrap();
    });
}

#[test]
fn a_descriptor_is_judged_by_where_it_leads_and_not_by_how_it_was_come_by() {
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
fn a_repository_that_somebody_else_moves_stays_protected_for_whoever_holds_it() {
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
fn a_file_that_is_moved_or_removed_while_it_is_open_can_be_written_on() {
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
        assert!(!call.guard.refused());
    });
}

#[test]
fn a_file_that_somebody_takes_out_of_the_workspace_is_not_written_on() {
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

/// Creates host files and plugins in the workspace.
fn host_state(call: &mut Call) {
    for dir in ["lib/plugins", "cache"] {
        fs::create_dir_all(call.host(dir)).unwrap();
    }
    for file in ["lib/plugins/a.wasm", "cache/key", "own.toml"] {
        fs::write(call.host(file), "host").unwrap();
    }
    let trees = [
        ("lib/plugins", Reading::Allowed),
        ("later/plugins", Reading::Allowed),
        ("cache", Reading::Refused),
        ("own.toml", Reading::Refused),
    ];
    let trees =
        trees.map(|(path, reading)| Arc::new(Tree::open(&call.host(path), reading).unwrap()));
    call.keep(HostRules { hard_links: HardLinks::Allow, trees: trees.into() });
}

#[test]
fn nothing_is_changed_in_what_belongs_to_the_host() {
    everywhere(|call| {
        host_state(call);
        call.link("innocent", "lib/plugins");
        for path in [
            "lib/plugins",
            "lib/plugins/a.wasm",
            "lib/plugins/b.wasm",
            "lib/PLUGINS",
            "innocent/a.wasm",
            "cache/key",
            "cache",
            "own.toml",
            "Own.toml",
            "later",
        ] {
            nothing_changes(call, path);
        }
        call.write("lib/other", "x").unwrap();
        assert_eq!(call.read("lib/plugins/a.wasm").unwrap(), "host");
    });
}

#[test]
fn what_is_the_host_s_own_is_not_even_read() {
    for resolver in resolvers() {
        for access in [Access::ReadOnly, Access::ReadWrite] {
            let mut call = Call::new(resolver, access, Quotas::default());
            host_state(&mut call);
            call.link("innocent", "cache");
            call.link("own", "own.toml");
            for path in [
                "cache",
                "cache/key",
                "own.toml",
                "innocent/key",
                "innocent",
                "own",
                "lib/../cache/key",
            ] {
                assert_eq!(call.open_to_read(path).map(drop), REFUSED, "{path}");
            }
            assert_eq!(call.read("file.txt").unwrap(), "inside");
            assert!(call.guard.refusal().is_some_and(|refusal| refusal.advice().is_some()));
            assert_eq!(
                call.guard.refusal().and_then(Refusal::tree).map(|tree| &**tree),
                Some("cache")
            );
        }
    }
}

#[test]
fn what_another_program_put_beside_it_under_a_form_of_its_name_is_not_read_either() {
    everywhere(|call| {
        host_state(call);
        fs::write(call.host("OWN.toml"), "x").unwrap();
        assert_eq!(call.open_to_read("OWN.toml").map(drop), REFUSED);
        fs::write(call.host("lib/own.toml"), "x").unwrap();
        assert_eq!(call.read("lib/own.toml").unwrap(), "x");
    });
}

#[test]
fn no_directory_above_what_belongs_to_the_host_is_moved_or_removed() {
    everywhere(|call| {
        host_state(call);
        assert_eq!(call.rename("lib", "elsewhere"), REFUSED);
        fs::create_dir(call.host("empty")).unwrap();
        assert_eq!(call.rename("empty", "lib"), REFUSED);
        assert_eq!(
            call.guard.refusal().and_then(Refusal::tree).map(|tree| &**tree),
            Some("lib/plugins")
        );
        assert_eq!(call.rename("dir", "elsewhere"), Ok(()));
    });
}

#[test]
fn a_second_name_of_a_file_of_the_host_is_protected_as_well() {
    everywhere(|call| {
        host_state(call);
        fs::hard_link(call.host("own.toml"), call.host("second")).unwrap();
        nothing_changes(call, "second");
        assert_eq!(call.open_to_read("second").map(drop), REFUSED);
    });
}

#[test]
fn directories_nest_to_the_bound_and_no_further() {
    for resolver in resolvers() {
        let quotas = Quotas { depth: 3, ..Quotas::default() };
        let mut call = Call::new(resolver, Access::ReadWrite, quotas);
        call.mkdir("dir/sub/third").unwrap();
        assert_eq!(call.mkdir("dir/sub/third/fourth"), Err(ErrorCode::Quota));
        assert_eq!(call.open_to_write("dir/sub/third/file").map(drop), Err(ErrorCode::Quota));
        assert_eq!(call.rename("file.txt", "dir/sub/third/file"), Err(ErrorCode::Quota));
        assert_eq!(call.rename("file.txt", "dir/sub/file"), Ok(()));
        assert_eq!(call.guard.exhausted(), Some(super::super::ledger::Exhausted::Depth(3)));
    }
}
