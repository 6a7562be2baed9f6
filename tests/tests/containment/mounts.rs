//! A part of a protected or hidden tree that is mounted elsewhere in the workspace is protected
//! there as well.

use std::fs;
use std::path::Path;

use palisade_tests::mounted::Mounted;
use palisade_tests::program::Ran;
use palisade_tests::{Program, World};
use serde_json::{Value, json};

/// Calls a tool in the world's workspace. The default cache is used.
fn call(world: &World, tool: &str, input: &Value) -> Ran {
    let words = ["call", tool, "--allow", "write", &input.to_string()];
    Program::new(world).env("HOME", world.home()).env("PALISADE_CACHE", "").args(words).run()
}

fn write(world: &World, path: &str) -> i32 {
    call(world, "write_file", &json!({"path": path, "content": "x"})).code
}

/// Creates a bare repository with a working tree in it.
fn bare(at: &Path) {
    for directory in ["hooks", "objects", "refs", "branches", "rebase-merge/sub", "main/src"] {
        fs::create_dir_all(at.join(directory)).unwrap();
    }
    fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(at.join("config"), "[core]").unwrap();
    fs::write(at.join("main/.git"), "gitdir: ../worktrees/main").unwrap();
}

fn bind(world: &World, from: &Path, to: &str) -> Option<Mounted> {
    Mounted::at(world.root().join(to), &["--bind", from.to_str().unwrap()])
}

#[test]
fn mounted_repository_part_is_protected() {
    let world = World::new();
    world.file("free/f", "x").folder(".git/hooks").file(".git/config", "[core]").file("c", "");
    let other = world.outer().join("other");
    for directory in [".git/hooks", "plain/hooks"] {
        fs::create_dir_all(other.join(directory)).unwrap();
    }
    bare(&other.join("bare.git"));
    let own = world.root();
    let mounts = [
        (own.join(".git/hooks"), "n"),
        (own.join(".git/config"), "c"),
        (other.join(".git/hooks"), "o"),
        (other.join("bare.git/hooks"), "b"),
        (other.join("plain/hooks"), "plain"),
        (own.join("free"), "more"),
    ]
    .map(|(from, to)| bind(&world, &from, to));
    if mounts.iter().any(Option::is_none) {
        return;
    }
    for path in ["n/pre-commit", "c", "o/pre-commit", "b/pre-commit", ".git/hooks/pre-commit"] {
        assert_eq!(write(&world, path), 4, "{path}");
    }
    for path in ["plain/pre-commit", "more/f", "free/g"] {
        assert_eq!(write(&world, path), 0, "{path}");
    }
    assert_eq!(world.read(".git/config").as_deref(), Some("[core]"));
    assert_eq!(fs::read_dir(own.join(".git/hooks")).unwrap().count(), 0);
    assert_eq!(
        call(&world, "read_file", &json!({"path": "c"})).code,
        0,
        "a protected file is read"
    );
}

#[test]
fn every_mounted_part_of_a_bare_repository_is_protected() {
    let world = World::new();
    world.file("config", "").file("settings", "");
    let (repository, other) = (world.outer().join("bare.git"), world.outer().join("other"));
    bare(&repository);
    fs::create_dir(&other).unwrap();
    fs::write(other.join("palisade.toml"), "[core]").unwrap();
    let mounts = [
        (repository.join("config"), "config"),
        (other.join("palisade.toml"), "settings"),
        (repository.join("branches"), "branches"),
        (repository.join("rebase-merge"), "rebase"),
        (repository.join("rebase-merge/sub"), "deep"),
        (repository.join("main"), "tree"),
        (repository.join("main/src"), "src"),
    ]
    .map(|(from, to)| bind(&world, &from, to));
    if mounts.iter().any(Option::is_none) {
        return;
    }
    for path in ["config", "settings", "branches/x", "rebase/git-rebase-todo", "deep/x"] {
        assert_eq!(write(&world, path), 4, "{path}");
    }
    for path in ["tree/x", "src/x", "free"] {
        assert_eq!(write(&world, path), 0, "{path}");
    }
    assert_eq!(world.read("config").as_deref(), Some("[core]"));
}

#[test]
fn mounted_part_of_a_repository_is_protected_as_the_workspace() {
    let world = World::new();
    let repository = world.outer().join("bare.git");
    bare(&repository);
    for (part, code) in [("rebase-merge", 4), ("hooks", 4), ("main", 0), ("main/src", 0)] {
        let Some(_mount) = bind(&world, &repository.join(part), "") else { return };
        assert_eq!(write(&world, "x"), code, "{part}");
    }
}

#[test]
fn mounted_cache_part_is_hidden() {
    let world = World::new();
    world.file("t", "");
    assert_eq!(call(&world, "list_dir", &json!({})).code, 0);
    let cache = world.home().join(".cache/palisade/compiled");
    let key = fs::read(cache.join("key")).unwrap();
    let part =
        fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
    let mounts =
        [(cache.join("key"), "t"), (cache, "whole")].map(|(from, to)| bind(&world, &from, to));
    if mounts.iter().any(Option::is_none) {
        return;
    }
    let part = part.and_then(|part| bind(&world, &part, "part"));
    for (tool, input) in [
        ("read_file", json!({"path": "t"})),
        ("write_file", json!({"path": "t", "content": "x"})),
        ("read_file", json!({"path": "whole/key"})),
        ("write_file", json!({"path": "whole/forged.code", "content": "x"})),
        ("list_dir", json!({"path": "whole"})),
    ] {
        let ran = call(&world, tool, &input);
        assert_eq!(ran.code, 4, "{tool} {input}: {ran:?}");
    }
    if part.is_some() {
        assert_eq!(write(&world, "part/forged.code"), 4);
    }
    assert_eq!(fs::read(world.root().join("t")).unwrap(), key);
}
