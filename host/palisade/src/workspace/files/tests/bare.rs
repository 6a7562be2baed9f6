//! Bare git repositories and native tools; the tests of the sandbox cover guests.

use super::*;
use std::sync::Barrier;

/// Tries every operation that creates a name in a directory.
fn additions(world: &World, path: &str) -> Vec<(&'static str, Result<(), FileError>)> {
    let files = world.workspace.files();
    vec![
        ("write", files.write(path, "x")),
        ("append", files.append(path, "x")),
        ("a directory on the way", files.write(&format!("{path}/below"), "x")),
    ]
}

#[test]
fn second_part_of_a_bare_repository_is_refused() {
    for (first, second) in [
        ("HEAD", "objects"),
        ("refs", "HEAD"),
        ("objects", "head"),
        ("CommonDir", "HEAD"),
        ("head.", "REFS"),
    ] {
        let world = World::new();
        world.workspace.files().write(&format!("docs/{first}/x"), "x").unwrap();
        for (operation, outcome) in additions(&world, &format!("docs/{second}")) {
            assert!(
                matches!(outcome, Err(FileError::Repository { .. })),
                "{operation} {second}: {outcome:?}"
            );
        }
        assert_eq!(world.entries("docs"), 1, "nothing is left behind");
        world.workspace.files().write(&format!("docs/sub/{second}"), "x").unwrap();
        let denied = ErrorKind::from(
            world.workspace.files().write(&format!("docs/{second}"), "x").unwrap_err(),
        );
        assert_eq!(denied.class(), ErrorClass::PermissionDenied);
    }
}

#[test]
fn users_repository_is_readable_but_unchangeable() {
    let world = World::new();
    for part in ["objects", "refs", "main"] {
        fs::create_dir_all(world.at("store.git").join(part)).unwrap();
    }
    for part in ["HEAD", "config", "main/.git"] {
        fs::write(world.at("store.git").join(part), "as it was").unwrap();
    }
    for path in ["store.git/config", "store.git/new", "store.git/refs/heads/main", "store.git/HEAD"]
    {
        for (operation, outcome) in world.changes(path) {
            // Deleting or patching in a directory that does not exist reports a missing file.
            let missing = path.ends_with("main") && matches!(outcome, Err(FileError::NotFound(_)));
            assert!(
                missing || matches!(outcome, Err(FileError::Bare(_))),
                "{operation} {path}: {outcome:?}"
            );
        }
    }
    assert_eq!(world.workspace.files().read("store.git/config").unwrap(), "as it was");
    world.workspace.files().write("store.git/main/src/lib.rs", "x").unwrap();
}

#[test]
fn concurrent_creation_of_two_parts_is_refused() {
    let world = World::new();
    let turn = Barrier::new(2);
    let files = world.workspace.files();
    let both = [world.at("sub/HEAD"), world.at("sub/objects")];
    // Counted, and asserted at the end: a thread that panicked early would block the other one at
    // the barrier.
    let mut repositories = 0;
    std::thread::scope(|scope| {
        let rounds = 0..1_000;
        let own = rounds.clone();
        scope.spawn(|| {
            for _ in own {
                turn.wait();
                let _ = files.append("sub/objects", "x");
                turn.wait();
                turn.wait();
            }
        });
        for _ in rounds {
            turn.wait();
            let _ = files.write("sub/HEAD", "x");
            turn.wait();
            repositories += usize::from(both.iter().all(|path| path.exists()));
            both.iter().for_each(|path| drop(fs::remove_file(path)));
            turn.wait();
        }
    });
    assert_eq!(repositories, 0);
}
