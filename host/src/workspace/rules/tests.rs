//! The rules as native tools meet them; the sandbox tries them on guests.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

use super::*;
use crate::workspace::{FileError, Workspace};
use std::fs;
use tempfile::TempDir;

/// A workspace with plugins and a cache in it, beside a store of packages.
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
    let trees = [("lib/plugins", Reading::Allowed), ("cache", Reading::Refused), ("later/x", Reading::Allowed)];
    let trees = trees.map(|(path, reading)| Arc::new(Tree::open(&root.join(path), reading).unwrap())).into();
    workspace.keep_rules_of(&Arc::new(HostRules { hard_links, trees }));
    (outer, workspace)
}

#[test]
fn native_tools_change_nothing_of_the_host_s() {
    let (outer, workspace) = world(HardLinks::Refuse);
    std::os::unix::fs::symlink("lib/plugins", outer.path().join("ws/innocent")).unwrap();
    let files = workspace.files();
    for path in
        ["lib/plugins/a.wasm", "lib/plugins/b.wasm", "innocent/a.wasm", "lib/plugins/new/deep", "later/x/y", "LATER"]
    {
        for outcome in [files.write(path, "x"), files.append(path, "x"), files.delete(path)] {
            // What is not there has nothing to be deleted.
            let missing = matches!(outcome, Err(FileError::NotFound(_)));
            assert!(missing || matches!(outcome, Err(FileError::Protected { .. })), "{path}: {outcome:?}");
        }
    }
    assert_eq!(files.read("innocent/a.wasm").unwrap(), "as it was");
    assert!(!outer.path().join("ws/later").exists() && !outer.path().join("ws/lib/plugins/new").exists());
    files.write("lib/other", "x").unwrap();
}

#[test]
fn native_tools_do_not_read_what_is_the_host_s_own() {
    let (_outer, workspace) = world(HardLinks::Refuse);
    let files = workspace.files();
    assert!(matches!(files.read("cache/key"), Err(FileError::Hidden { .. })));
    assert!(matches!(files.list("cache"), Err(FileError::Hidden { .. })));
    assert_eq!(files.read("ordinary").unwrap(), "as it was");
    assert!(files.list(".").unwrap().contains(&"ordinary".to_owned()));
}

#[test]
fn a_file_with_several_names_is_replaced_and_not_added_to_unless_the_operator_allows_it() {
    let (outer, workspace) = world(HardLinks::Refuse);
    assert!(matches!(workspace.files().append("package", "+"), Err(FileError::HardLinked(_))));
    workspace.files().write("package", "own").unwrap();
    assert_eq!(fs::read_to_string(outer.path().join("store")).unwrap(), "shared");
    let (outer, workspace) = world(HardLinks::Allow);
    workspace.files().append("package", "+").unwrap();
    assert_eq!(fs::read_to_string(outer.path().join("store")).unwrap(), "shared+");
}

#[test]
fn of_two_hosts_in_one_workspace_the_strictest_counts_and_each_protects_its_own() {
    let (outer, workspace) = world(HardLinks::Allow);
    let tree = Arc::new(Tree::open(&outer.path().join("ws/ordinary"), Reading::Allowed).unwrap());
    let other = Arc::new(HostRules { hard_links: HardLinks::Refuse, trees: vec![tree] });
    workspace.keep_rules_of(&other);
    workspace.keep_rules_of(&other);
    assert_eq!(workspace.rules().hard_links(), HardLinks::Refuse);
    assert!(matches!(workspace.files().write("ordinary", "x"), Err(FileError::Protected { .. })));
    assert!(matches!(workspace.files().write("lib/plugins/a.wasm", "x"), Err(FileError::Protected { .. })));
}

#[test]
fn what_lies_elsewhere_is_no_business_of_a_workspace() {
    let outer = TempDir::new().unwrap();
    fs::create_dir_all(outer.path().join("ws")).unwrap();
    fs::create_dir_all(outer.path().join("plugins")).unwrap();
    let workspace = Workspace::open(&outer.path().join("ws")).unwrap();
    let tree = Arc::new(Tree::open(&outer.path().join("plugins"), Reading::Refused).unwrap());
    workspace.keep_rules_of(&Arc::new(HostRules { trees: vec![tree], ..HostRules::default() }));
    assert!(!workspace.rules().hide_anything());
    workspace.files().write("plugins/x", "free").unwrap();
}

#[test]
fn native_tools_do_not_read_what_has_been_replaced_either() {
    let (outer, workspace) = world(HardLinks::Refuse);
    let root = outer.path().join("ws");
    fs::write(root.join("own"), "first").unwrap();
    let tree = Arc::new(Tree::open(&root.join("own"), Reading::Refused).unwrap());
    workspace.keep_rules_of(&Arc::new(HostRules { trees: vec![tree], ..HostRules::default() }));
    for (new, name) in [("new", "own"), ("newer", "cache")] {
        let _ = fs::rename(root.join(name), root.join(format!("old {name}")));
        fs::create_dir(root.join(new)).unwrap();
        fs::write(root.join(new).join("key"), "x").unwrap();
        fs::rename(root.join(new), root.join(name)).unwrap();
        assert!(matches!(workspace.files().read(&format!("{name}/key")), Err(FileError::Hidden { .. })), "{name}");
        assert!(matches!(workspace.files().list(name), Err(FileError::Hidden { .. })), "{name}");
    }
}

#[test]
fn native_tools_do_not_replace_a_link_on_the_way_to_what_is_the_host_s() {
    let (outer, workspace) = world(HardLinks::Refuse);
    let root = outer.path().join("ws");
    std::os::unix::fs::symlink("lib", root.join("way")).unwrap();
    let tree = Arc::new(Tree::open(&root.join("way/plugins"), Reading::Allowed).unwrap());
    workspace.keep_rules_of(&Arc::new(HostRules { trees: vec![tree], ..HostRules::default() }));
    assert!(matches!(workspace.files().delete("way"), Err(FileError::Protected { .. })));
    workspace.files().write("way/other", "free").unwrap();
}
