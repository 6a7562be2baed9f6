//! Another user of the machine reads neither the tokens nor the journal. Root only: no other user
//! can act as two.

use crate::served;
use palisade_tests::World;
use palisade_tests::api::{token_file, write};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// The user `nobody`.
const OTHER: u32 = 65_534;

/// Returns true if another user can do this with a path.
fn can(words: &[&str], path: &Path) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(path).uid(OTHER).gid(OTHER).current_dir("/");
    command.output().unwrap().status.success()
}

#[test]
fn another_user_reads_neither_tokens_nor_the_journal() {
    if !rustix::process::geteuid().is_root() {
        palisade_tests::skip("another user: only root can act as two");
        return;
    }
    let world = World::new();
    // Nothing above protects the files: only their own directories and modes do.
    for folder in [world.outer(), &world.home()] {
        set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(world.home().join("open"), "text").unwrap();
    assert!(can(&["cat"], &world.home().join("open")), "the test can see a success");
    let api = served(&world, &["--allow", "write"]);
    let _ = api.client.call("s1", &write("c1", "a.txt"));
    let state = world.home().join(".local/state/palisade");
    let (tokens, journal) = (state.join("tokens"), state.join("journal"));
    let address = &api.endpoint.address;
    let mut files = vec![token_file(&world.home(), address, "")];
    files.push(token_file(&world.home(), address, ".operator"));
    files.extend(std::fs::read_dir(&journal).unwrap().flatten().map(|entry| entry.path()));
    assert!(files.len() > 3, "{files:?}");
    for folder in [&tokens, &journal] {
        assert!(!can(&["ls"], folder) && !can(&["touch", "-c"], folder), "{folder:?}");
    }
    for file in &files {
        assert!(file.is_file(), "{file:?}");
        assert!(!can(&["cat"], file), "{file:?}");
    }
    // Also by a path that leads past the directories, as a leaked descriptor would.
    for folder in [&tokens, &journal, &state, &world.home().join(".local/state")] {
        set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    for file in &files {
        assert!(!can(&["cat"], file), "{file:?}");
    }
}
