//! Bare git repositories: no operation creates one, in any order, or changes an existing one.

use std::fs;
use std::sync::{Arc, Barrier};

use super::{
    Access, Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, Quotas, READ, WRITE, code,
    everywhere, now, resolvers, rules_of,
};
use crate::{Mount, Refusal};

const REFUSED: Result<(), ErrorCode> = Err(ErrorCode::NotPermitted);

/// Tries every operation that creates a name in a directory.
fn additions(call: &mut Call, path: &str) -> Vec<(&'static str, Result<(), ErrorCode>)> {
    vec![
        ("create", call.open(path, FOLLOW, OpenFlags::CREATE, WRITE).map(drop)),
        (
            "create anew",
            call.open(path, FOLLOW, OpenFlags::CREATE | OpenFlags::EXCLUSIVE, READ | WRITE)
                .map(drop),
        ),
        ("mkdir", call.mkdir(path)),
        ("rename a file", call.rename("file.txt", path)),
        ("rename a directory", call.rename("dir", path)),
        ("link", call.hard_link("file.txt", path)),
    ]
}

#[test]
fn second_part_of_a_bare_repository_is_refused() {
    let forms = [
        "HEAD",
        "head",
        "Head.",
        "HE\u{200c}AD",
        "objects",
        "OBJECTS",
        "refs",
        "ref\u{17f}",
        "CommonDir",
    ];
    everywhere(|call| {
        for (first, second) in forms.iter().flat_map(|first| forms.map(|second| (*first, second))) {
            let is_head = |name: &str| name.to_lowercase().starts_with("he");
            call.mkdir("docs").unwrap();
            call.mkdir(&format!("docs/{first}")).unwrap();
            if is_head(first) == is_head(second) {
                // Parts of one kind do not form a repository.
                assert!(
                    first == second || call.mkdir(&format!("docs/{second}")).is_ok(),
                    "{first} {second}"
                );
            } else {
                for (operation, outcome) in additions(call, &format!("docs/{second}")) {
                    assert_eq!(outcome, REFUSED, "{operation} {second} beside {first}");
                }
                assert!(!call.host("docs").join(second).exists());
            }
            fs::remove_dir_all(call.host("docs")).unwrap();
        }
        let named = |refusal: &Refusal| matches!(refusal, Refusal::Repository { .. });
        assert!(call.fs.refusal().is_some_and(named), "{:?}", call.fs.refusal());
    });
}

#[test]
fn single_part_and_similar_names_are_allowed() {
    everywhere(|call| {
        for path in ["dir/objects", "dir/refs", "dir/sub/HEAD"] {
            call.mkdir(path).unwrap();
        }
        for path in ["dir/HEAD.md", "dir/header", "dir/sub/references", "dir/sub/object.rs"] {
            call.write(path, "x").unwrap();
        }
        call.write("dir/objects/HEAD", "x").unwrap();
        call.rename("dir/objects", "dir/Objects").unwrap();
        call.rename("dir/sub/HEAD", "dir/sub/head").unwrap();
        assert!(!call.fs.refused());
    });
}

#[test]
fn existing_part_can_be_replaced_and_written() {
    everywhere(|call| {
        // Created by the user; without `refs` git does not take them for a repository.
        fs::create_dir(call.host("dir/objects")).unwrap();
        fs::write(call.host("dir/HEAD"), "x").unwrap();
        call.write("dir/HEAD", "y").unwrap();
        call.rename("file.txt", "dir/HEAD").unwrap();
        assert_eq!(call.mkdir("dir/refs"), REFUSED);
        assert_eq!(call.write("dir/commondir", ".."), REFUSED);
    });
}

/// Creates the parts of a repository, as the user would.
fn repository(call: &Call, path: &str) {
    for part in ["objects", "refs", "hooks"] {
        fs::create_dir_all(call.host(path).join(part)).unwrap();
    }
    for part in ["HEAD", "config"] {
        fs::write(call.host(path).join(part), "as it was").unwrap();
    }
}

/// Tries to change the entry at a path, or to create one.
fn changes(call: &mut Call, path: &str) -> Vec<(&'static str, Result<(), ErrorCode>)> {
    let mut all = vec![
        ("write", call.open(path, FOLLOW, OpenFlags::empty(), WRITE).map(drop)),
        ("truncate", call.open(path, FOLLOW, OpenFlags::TRUNCATE, WRITE).map(drop)),
        ("unlink", call.unlink(path)),
        ("rmdir", call.rmdir(path)),
        ("rename away", call.rename(path, "away")),
    ];
    all.extend(additions(call, path));
    all
}

#[test]
fn users_bare_repository_cannot_be_changed() {
    everywhere(|call| {
        repository(call, "store.git");
        fs::create_dir(call.host("linked")).unwrap();
        fs::write(call.host("linked/HEAD"), "as it was").unwrap();
        fs::write(call.host("linked/commondir"), "../store.git").unwrap();
        call.link("innocent", "store.git");
        for path in [
            "store.git/config",
            "store.git/HEAD",
            "store.git/new",
            "store.git/hooks/pre-commit",
            "store.git/refs",
            "innocent/config",
            "linked/config.worktree",
            "linked/commondir",
        ] {
            for (operation, outcome) in changes(call, path) {
                assert_eq!(outcome, REFUSED, "{operation} {path}");
            }
        }
        assert_eq!(call.fs.refusal(), Some(&Refusal::Bare));
        assert_eq!(call.read("store.git/config").unwrap(), "as it was");
        assert_eq!(call.fs.modified(), [""; 0]);
    });
}

#[test]
fn repository_is_reported_by_its_name() {
    everywhere(|call| {
        repository(call, "draft");
        let dir = call.open_to_read("draft/hooks").unwrap();
        fs::rename(call.host("draft"), call.host("dir/.git")).unwrap();
        let made = code(now(call.view().create_directory_at(dir, "new".to_owned())));
        assert_eq!(made, REFUSED);
        assert_eq!(call.fs.refusal().and_then(Refusal::tree).map(|tree| &**tree), Some(".git"));
    });
}

#[test]
fn repository_moves_as_a_whole_with_free_working_trees() {
    everywhere(|call| {
        repository(call, "store.git");
        fs::create_dir_all(call.host("store.git/main/src")).unwrap();
        fs::write(call.host("store.git/main/.git"), "gitdir: ../worktrees/main").unwrap();
        call.write("store.git/main/src/lib.rs", "x").unwrap();
        call.write("store.git/main/file", "x").unwrap();
        call.rename("store.git", "dir/moved").unwrap();
        call.write("dir/moved/main/file", "y").unwrap();
        call.write("dir/file", "x").unwrap();
        assert!(!call.fs.refused());
        assert_eq!(call.write("dir/moved/config", "x"), REFUSED);
        assert_eq!(call.write("dir/moved/main/.git", "x"), REFUSED);
    });
}

#[test]
fn bare_workspace_is_changed_only_in_working_trees() {
    everywhere(|call| {
        repository(call, "");
        fs::create_dir(call.host("main")).unwrap();
        fs::write(call.host("main/.git"), "gitdir: ../worktrees/main").unwrap();
        for path in ["config", "new", "dir/new", "hooks/pre-commit"] {
            assert_eq!(call.write(path, "x"), REFUSED, "{path}");
        }
        call.write("main/file", "x").unwrap();
    });
}

#[test]
fn directory_with_repository_entries_is_a_repository() {
    everywhere(|call| {
        for name in ["a", "b", "c"] {
            repository(call, name);
        }
        fs::create_dir(call.host("a/.git")).unwrap();
        call.link("b/.git", ".");
        fs::write(call.host("c/.git"), "gitdir: .").unwrap();
        for name in ["a", "b", "c"] {
            for path in ["config", "hooks/pre-commit", "new"] {
                assert_eq!(call.write(&format!("{name}/{path}"), "x"), REFUSED, "{name}/{path}");
            }
        }
    });
}

#[test]
fn repository_directory_is_never_a_working_tree() {
    everywhere(|call| {
        repository(call, "store.git");
        fs::write(call.host("store.git/hooks/.git"), "gitdir: ../worktrees/main").unwrap();
        fs::create_dir_all(call.host("store.git/info/sub/.git")).unwrap();
        for path in
            ["store.git/hooks/pre-commit", "store.git/info/attributes", "store.git/info/sub/new"]
        {
            assert_eq!(call.write(path, "x"), REFUSED, "{path}");
        }
    });
}

#[test]
fn concurrent_creation_of_two_parts_is_refused() {
    const ROUNDS: usize = 1_500;
    for resolver in resolvers() {
        let mut one = Call::new(resolver, Access::ReadWrite, Quotas::default());
        let mut other = Call::new(resolver, Access::ReadWrite, Quotas::default());
        let root = fs::File::open(one.host("")).unwrap();
        other.fs.root = Some(Mount::with_resolver(root.into(), resolver).root());
        other.rules = Arc::new(rules_of(&one.host("")));
        other.again();
        let turn = Barrier::new(2);
        let both = [one.host("dir/HEAD"), one.host("dir/objects")];
        // Counted, and asserted at the end: a thread that panicked early would block the other one
        // at the barrier.
        let mut repositories = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    turn.wait();
                    let _ = other.mkdir("dir/objects");
                    turn.wait();
                    turn.wait();
                }
            });
            for _ in 0..ROUNDS {
                turn.wait();
                let _ = one.write("dir/HEAD", "ref: refs/heads/main");
                turn.wait();
                repositories += usize::from(both.iter().all(|path| path.exists()));
                let _ = (fs::remove_file(&both[0]), fs::remove_dir(&both[1]));
                one.table = wasmtime::component::ResourceTable::new();
                turn.wait();
            }
        });
        assert_eq!(repositories, 0);
    }
}

#[test]
fn wait_for_a_locked_directory_is_bounded() {
    everywhere(|call| {
        let lock = fs::File::open(call.host("dir")).unwrap();
        lock.lock().unwrap();
        assert_eq!(call.mkdir("dir/objects"), Err(ErrorCode::WouldBlock));
        call.mkdir("dir/other").unwrap();
        drop(lock);
        call.mkdir("dir/objects").unwrap();
    });
}

#[test]
fn briefly_locked_directory_is_awaited() {
    everywhere(|call| {
        let turn = Barrier::new(2);
        for _ in 0..20 {
            let (place, file) = (call.host("dir"), call.host("file.txt"));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let lock = fs::File::open(place).unwrap();
                    lock.lock().unwrap();
                    turn.wait();
                    // Keeps the lock busy for a while.
                    assert!((0..2_000).all(|_| file.exists()));
                });
                turn.wait();
                assert_eq!(call.mkdir("dir/objects"), Ok(()));
            });
            call.rmdir("dir/objects").unwrap();
        }
    });
}

#[test]
fn crowded_directory_allows_no_repository_part() {
    everywhere(|call| {
        for number in 0..20_000 {
            fs::hard_link(call.host("file.txt"), call.host("dir").join(number.to_string()))
                .unwrap();
        }
        assert_eq!(call.mkdir("dir/objects"), REFUSED);
        let told = call.fs.refusal().map(ToString::to_string).unwrap_or_default();
        assert!(told.contains("20000 entries") && told.contains("another name"), "{told}");
        call.mkdir("dir/other").unwrap();
    });
}
