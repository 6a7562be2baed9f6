//! Native tools and the rules of a workspace; the tests of `palisade-wasi-fs` cover guests.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

mod path_rules;

use super::{FileError, HardLinks, ProtectedTree, Protection, Reading, Workspace};
use std::fs;
use std::sync::Arc;
use tempfile::TempDir;

/// Creates a workspace with plugins and a cache in it, next to a package store.
fn world(hard_links: HardLinks) -> (TempDir, Workspace) {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("ws");
    for dir in ["lib/plugins", "cache"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for file in ["lib/plugins/a.wasm", "cache/key", "ordinary"] {
        fs::write(root.join(file), "as it was").unwrap();
    }
    fs::write(outer.path().join("store"), "shared").unwrap();
    fs::hard_link(outer.path().join("store"), root.join("package")).unwrap();
    let workspace = Workspace::open(&root).unwrap();
    let trees = [
        ("lib/plugins", Reading::Allowed),
        ("cache", Reading::Refused),
        ("later/x", Reading::Allowed),
    ];
    let trees = trees
        .map(|(path, reading)| Arc::new(ProtectedTree::open(&root.join(path), reading).unwrap()))
        .into();
    workspace.keep_rules_of(&Arc::new(Protection::new(hard_links, trees)));
    (outer, workspace)
}

#[test]
fn native_tools_cannot_change_host_files() {
    let (outer, workspace) = world(HardLinks::Refuse);
    std::os::unix::fs::symlink("lib/plugins", outer.path().join("ws/innocent")).unwrap();
    let files = workspace.files();
    for path in [
        "lib/plugins/a.wasm",
        "lib/plugins/b.wasm",
        "innocent/a.wasm",
        "lib/plugins/new/deep",
        "later/x/y",
        "LATER",
    ] {
        for outcome in [files.write(path, "x"), files.append(path, "x"), files.delete(path)] {
            // Deleting a missing file reports it as missing.
            let missing = matches!(outcome, Err(FileError::NotFound(_)));
            assert!(
                missing || matches!(outcome, Err(FileError::Protected { .. })),
                "{path}: {outcome:?}"
            );
        }
    }
    assert_eq!(files.read("innocent/a.wasm").unwrap(), "as it was");
    assert!(
        !outer.path().join("ws/later").exists()
            && !outer.path().join("ws/lib/plugins/new").exists()
    );
    files.write("lib/other", "x").unwrap();
}

#[test]
fn native_tools_cannot_read_hidden_files() {
    let (_outer, workspace) = world(HardLinks::Refuse);
    let files = workspace.files();
    assert!(matches!(files.read("cache/key"), Err(FileError::Hidden { .. })));
    assert!(matches!(files.list("cache"), Err(FileError::Hidden { .. })));
    assert_eq!(files.read("ordinary").unwrap(), "as it was");
    assert!(files.list(".").unwrap().contains(&"ordinary".to_owned()));
}

#[test]
fn hidden_file_stays_hidden_behind_a_changing_link() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (outer, workspace) = world(HardLinks::Refuse);
    let at = |path: &str| outer.path().join("ws").join(path);
    fs::create_dir(at("open")).unwrap();
    fs::write(at("open/key"), "for everybody").unwrap();
    for (target, name) in [("open", "turn0"), ("cache", "turn1")] {
        std::os::unix::fs::symlink(target, at(name)).unwrap();
    }
    fs::rename(at("turn0"), at("turn")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for target in ["cache", "open"] {
                    let _ = std::os::unix::fs::symlink(target, at("next"));
                    let _ = fs::rename(at("next"), at("turn"));
                }
            }
        });
        let files = workspace.files();
        let read = (0..20_000)
            .filter_map(|_| files.read("turn/key").ok())
            .find(|text| text != "for everybody");
        let listed = (0..5_000).filter_map(|_| files.list("turn").ok()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(read, None);
        assert!(listed > 0);
    });
}

#[test]
fn hard_linked_file_is_replaced_unless_allowed() {
    let (outer, workspace) = world(HardLinks::Refuse);
    assert!(matches!(workspace.files().append("package", "+"), Err(FileError::HardLinked(_))));
    workspace.files().write("package", "own").unwrap();
    assert_eq!(fs::read_to_string(outer.path().join("store")).unwrap(), "shared");
    let (outer, workspace) = world(HardLinks::Allow);
    workspace.files().append("package", "+").unwrap();
    assert_eq!(fs::read_to_string(outer.path().join("store")).unwrap(), "shared+");
}

#[test]
fn rules_of_two_hosts_are_combined_strictly() {
    let (outer, workspace) = world(HardLinks::Allow);
    let tree =
        Arc::new(ProtectedTree::open(&outer.path().join("ws/ordinary"), Reading::Allowed).unwrap());
    let other = Arc::new(Protection::new(HardLinks::Refuse, vec![tree]));
    workspace.keep_rules_of(&other);
    let rules = workspace.rules();
    workspace.keep_rules_of(&other);
    assert!(Arc::ptr_eq(&rules, &workspace.rules()), "rules that are kept already add nothing");
    assert_eq!(workspace.rules().hard_links(), HardLinks::Refuse);
    assert!(matches!(workspace.files().write("ordinary", "x"), Err(FileError::Protected { .. })));
    assert!(matches!(
        workspace.files().write("lib/plugins/a.wasm", "x"),
        Err(FileError::Protected { .. })
    ));
}

#[test]
fn paths_outside_the_workspace_are_not_judged() {
    let outer = TempDir::new().unwrap();
    fs::create_dir_all(outer.path().join("ws")).unwrap();
    fs::create_dir_all(outer.path().join("plugins")).unwrap();
    let workspace = Workspace::open(&outer.path().join("ws")).unwrap();
    let tree =
        Arc::new(ProtectedTree::open(&outer.path().join("plugins"), Reading::Refused).unwrap());
    workspace.keep_rules_of(&Arc::new(Protection::new(HardLinks::Refuse, vec![tree])));
    assert!(!workspace.rules().hide_anything());
    workspace.files().write("plugins/x", "free").unwrap();
}

#[test]
fn native_tools_cannot_read_replaced_hidden_files() {
    let (outer, workspace) = world(HardLinks::Refuse);
    let root = outer.path().join("ws");
    fs::write(root.join("own"), "first").unwrap();
    let tree = Arc::new(ProtectedTree::open(&root.join("own"), Reading::Refused).unwrap());
    workspace.keep_rules_of(&Arc::new(Protection::new(HardLinks::Refuse, vec![tree])));
    for (new, name) in [("new", "own"), ("newer", "cache")] {
        let _ = fs::rename(root.join(name), root.join(format!("old {name}")));
        fs::create_dir(root.join(new)).unwrap();
        fs::write(root.join(new).join("key"), "x").unwrap();
        fs::rename(root.join(new), root.join(name)).unwrap();
        assert!(
            matches!(workspace.files().read(&format!("{name}/key")), Err(FileError::Hidden { .. })),
            "{name}"
        );
        assert!(matches!(workspace.files().list(name), Err(FileError::Hidden { .. })), "{name}");
    }
}

#[test]
fn native_tools_cannot_replace_links_to_host_files() {
    let (outer, workspace) = world(HardLinks::Refuse);
    let root = outer.path().join("ws");
    std::os::unix::fs::symlink("lib", root.join("way")).unwrap();
    let tree = Arc::new(ProtectedTree::open(&root.join("way/plugins"), Reading::Allowed).unwrap());
    workspace.keep_rules_of(&Arc::new(Protection::new(HardLinks::Refuse, vec![tree])));
    assert!(matches!(workspace.files().delete("way"), Err(FileError::Protected { .. })));
    workspace.files().write("way/other", "free").unwrap();
}

#[test]
fn tree_created_later_is_protected() {
    let (outer, workspace) = world(HardLinks::Refuse);
    let root = outer.path().join("ws");
    let files = workspace.files();
    fs::create_dir(root.join("state")).unwrap();
    let tree = ProtectedTree::open(&root.join("state/own"), Reading::Refused).unwrap();
    workspace.keep_rules_of(&Arc::new(Protection::new(HardLinks::Refuse, vec![Arc::new(tree)])));
    files.write("state/other", "free").unwrap();
    fs::create_dir(root.join("state/own")).unwrap();
    fs::write(root.join("state/own/key"), "as it was").unwrap();
    for path in ["state/own/key", "state/own/new"] {
        let outcome = files.write(path, "x");
        assert!(
            matches!(outcome, Err(FileError::Protected { .. } | FileError::Hidden { .. })),
            "{path}: {outcome:?}"
        );
    }
    assert_eq!(fs::read_to_string(root.join("state/own/key")).unwrap(), "as it was");
    files.write("state/other", "still free").unwrap();
}

#[test]
fn tree_with_missing_parents_is_protected_as_they_appear() {
    let (outer, workspace) = world(HardLinks::Refuse);
    let root = outer.path().join("ws");
    let files = workspace.files();
    let tree = ProtectedTree::open(&root.join("far/off/own"), Reading::Refused).unwrap();
    workspace.keep_rules_of(&Arc::new(Protection::new(HardLinks::Refuse, vec![Arc::new(tree)])));
    let refused = |path: &str| {
        let outcome = files.write(path, "x");
        assert!(
            matches!(outcome, Err(FileError::Protected { .. } | FileError::Hidden { .. })),
            "{path}: {outcome:?}"
        );
    };
    refused("far/other");
    // The user creates one directory after the other, and finally the tree.
    fs::create_dir(root.join("far")).unwrap();
    files.write("far/other", "free").unwrap();
    refused("far/off");
    refused("far/off/own");
    fs::create_dir(root.join("far/off")).unwrap();
    files.write("far/off/other", "free").unwrap();
    refused("far/off/own");
    refused("far/off/own/key");
    fs::create_dir(root.join("far/off/own")).unwrap();
    fs::write(root.join("far/off/own/key"), "as it was").unwrap();
    refused("far/off/own/key");
    refused("far/off/own/new");
    assert!(matches!(
        files.delete("far/off/own/key"),
        Err(FileError::Protected { .. } | FileError::Hidden { .. })
    ));
    assert!(matches!(files.read("far/off/own/key"), Err(FileError::Hidden { .. })));
    assert_eq!(fs::read_to_string(root.join("far/off/own/key")).unwrap(), "as it was");
    files.write("far/off/other", "still free").unwrap();
}
