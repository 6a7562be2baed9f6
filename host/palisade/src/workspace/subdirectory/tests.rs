//! Tests of subdirectories as workspaces.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

use super::*;
use crate::workspace::{HardLinks, LastLink, PathRules, ProtectedTree, Protection, Reading};
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

fn path(path: &str) -> Subdirectory {
    Subdirectory::parse(path).unwrap()
}

/// Returns a workspace with the directories `notes/public` and `other`.
fn workspace() -> (TempDir, Workspace) {
    let world = tempfile::tempdir().unwrap();
    fs::create_dir_all(world.path().join("notes/public")).unwrap();
    fs::create_dir(world.path().join("other")).unwrap();
    let workspace = Workspace::open(world.path()).unwrap();
    (world, workspace)
}

#[test]
fn path_consists_of_plain_names() {
    for good in ["a", "a/b", "a b/.c", &"a".repeat(MAX_PATH)] {
        assert!(Subdirectory::parse(good).is_ok(), "{good}");
    }
    let long = "a".repeat(MAX_PATH + 1);
    for bad in
        ["", ".", "..", "/a", "a/", "a//b", "a/../b", "./a", "a\n", "a\u{202e}", "a\0", &long]
    {
        assert!(Subdirectory::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn missing_directory_file_and_link_are_refused_and_tried_again() {
    let (world, workspace) = workspace();
    let at = |name: &str| world.path().join(name);
    fs::write(at("file"), "").unwrap();
    symlink("notes", at("link")).unwrap();
    symlink(world.path().parent().unwrap(), at("notes/out")).unwrap();
    for refused in ["later", "file", "link", "link/public", "notes/out"] {
        assert!(workspace.below(&path(refused)).is_err(), "{refused}");
    }
    fs::create_dir(at("later")).unwrap();
    let below = workspace.below(&path("later")).unwrap();
    assert!(Arc::ptr_eq(&below, &workspace.below(&path("later")).unwrap()), "it is kept open");
    assert_eq!(below.root(), workspace.root().join("later"));
}

#[test]
fn paths_are_resolved_beneath_the_subdirectory() {
    let (world, workspace) = workspace();
    symlink("../../other", world.path().join("notes/public/out")).unwrap();
    let below = workspace.below(&path("notes/public")).unwrap();
    let resolve = |path: &str| below.resolve(path, LastLink::Follow).ok();
    assert_eq!(resolve("a/../b").as_deref(), Some("b"));
    let inside = below.root().join("c");
    assert_eq!(resolve(inside.to_str().unwrap()).as_deref(), Some("c"));
    let other = workspace.root().join("other");
    for out in ["..", "../x", "out", "out/x", other.to_str().unwrap(), "/etc"] {
        assert_eq!(resolve(out), None, "{out}");
    }
    assert_eq!(below.in_whole("c".to_owned()), "notes/public/c");
    assert_eq!(below.in_whole(".".to_owned()), "notes/public");
    assert_eq!(workspace.in_whole("c".to_owned()), "c");
}

#[test]
fn directory_at_the_path_is_the_workspace_of_the_next_call() {
    let (world, workspace) = workspace();
    let at = |name: &str| world.path().join(name);
    let first = workspace.below(&path("notes/public")).unwrap();
    fs::write(at("notes/public/own"), "first").unwrap();
    fs::rename(at("notes/public"), at("notes/moved")).unwrap();
    symlink(at("other"), at("notes/public")).unwrap();
    assert!(workspace.below(&path("notes/public")).is_err());
    fs::remove_file(at("notes/public")).unwrap();
    fs::create_dir(at("notes/public")).unwrap();
    fs::write(at("notes/public/own"), "second").unwrap();
    let second = workspace.below(&path("notes/public")).unwrap();
    assert_eq!(second.files().read("own").unwrap(), "second");
    // A call that began before has lost its directory, until it is back.
    assert!(first.files().read("own").is_err());
    assert!(first.files().write("own", "x").is_err());
    fs::remove_dir_all(at("notes/public")).unwrap();
    fs::rename(at("notes/moved"), at("notes/public")).unwrap();
    assert_eq!(first.files().read("own").unwrap(), "first");
}

#[test]
fn protected_tree_is_no_workspace_of_a_plugin() {
    let (world, workspace) = workspace();
    fs::create_dir_all(world.path().join(".git/hooks")).unwrap();
    for closed in [".git", ".git/hooks", ".GIT/hooks"] {
        assert!(workspace.below(&path(closed)).is_err(), "{closed}");
    }
    assert!(workspace.below(&path("notes/public")).is_ok());
    // Rules that come later close a subdirectory that is open, and hold in one that stays.
    let tree = |name: &str| {
        Arc::new(ProtectedTree::open(&world.path().join(name), Reading::Refused).unwrap())
    };
    let trees = vec![tree("notes"), tree("other/secret")];
    let below = workspace.below(&path("other")).unwrap();
    workspace.keep_rules_of(&Arc::new(Protection::new(HardLinks::Refuse, trees)));
    assert!(matches!(workspace.below(&path("notes/public")), Err(NotOpened::Forbidden(..))));
    assert!(below.update_rules().is_ok());
    fs::write(world.path().join("other/secret"), "x").unwrap();
    assert!(below.files().read("secret").is_err());
    assert!(below.files().write("open", "x").is_ok());
}

#[test]
fn path_rules_stay_relative_to_the_whole_workspace() {
    let (world, workspace) = workspace();
    for file in ["notes/public/open", "notes/public/secret", "notes/public/keys/a"] {
        let file = world.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "x").unwrap();
    }
    let deny = ["notes/public/secret", "notes/*/keys/**", "open"].map(str::to_owned);
    let rules = PathRules::new(None, &deny).unwrap();
    let own = Protection::new(HardLinks::Refuse, Vec::new()).with_paths(rules);
    workspace.keep_rules_of(&Arc::new(own));
    let below = workspace.below(&path("notes/public")).unwrap();
    let reads = |name: &str| below.files().read(name).is_ok();
    assert!(reads("open") && !reads("secret") && !reads("keys/a"));
    let whole = PathRules::new(Some(&["other/**".to_owned()]), &[]).unwrap();
    let own = Protection::new(HardLinks::Refuse, Vec::new()).with_paths(whole);
    workspace.keep_rules_of(&Arc::new(own));
    below.update_rules().unwrap();
    assert!(!reads("open"), "the directory is there, and nothing in it");
}
