//! The rules of a directory, without guests.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

use super::*;
use std::fs;
use tempfile::TempDir;

/// Creates a directory with plugins and a cache in it, and its rules.
fn world() -> (TempDir, PathBuf, ProtectedPaths) {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("ws");
    for dir in ["lib/plugins", "cache"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    let root = root.canonicalize().unwrap();
    let trees = [
        ("lib/plugins", Reading::Allowed),
        ("cache", Reading::Refused),
        ("later/x", Reading::Allowed),
    ];
    let trees = trees
        .map(|(path, reading)| Arc::new(ProtectedTree::open(&root.join(path), reading).unwrap()))
        .into();
    let host = Arc::new(Protection::new(HardLinks::Refuse, trees));
    let dir = fs::File::open(&root).unwrap();
    let rules = ProtectedPaths::new(&dir, &root).unwrap().with(&host, &root);
    (outer, root, rules)
}

#[test]
fn hard_links_setting_round_trips() {
    for (links, name) in [(HardLinks::Refuse, "refuse"), (HardLinks::Allow, "allow")] {
        assert_eq!((links.to_string().as_str(), name.parse()), (name, Ok(links)));
    }
    assert!("both".parse::<HardLinks>().is_err_and(|error| error.contains("both")));
}

#[test]
fn paths_are_judged_by_name_before_use() {
    let (_outer, root, rules) = world();
    for (path, changed, read) in [
        ("ordinary", true, true),
        ("lib/other", true, true),
        ("lib/plugins-not", true, true),
        ("sub/.git/config", false, true),
        ("lib/plugins/a.wasm", false, true),
        ("./lib/./plugins", false, true),
        ("later/x/y", false, true),
        ("cache", false, false),
        ("./cache/key", false, false),
    ] {
        assert_eq!(rules.check_places(path, &root).is_ok(), changed, "{path}");
        assert_eq!(rules.check_hidden(path, &root).is_ok(), read, "{path}");
    }
}

#[test]
fn directory_is_inside_if_its_ancestors_are() {
    let (outer, _, rules) = world();
    let inside = |path: &str| {
        let dir = fs::File::open(outer.path().join(path)).unwrap();
        rules.lies_inside(dir.as_fd()).unwrap()
    };
    assert!(inside("ws") && inside("ws/lib/plugins") && !inside("."));
}

#[test]
fn followed_links_match_the_systems_limit() {
    let outer = TempDir::new().unwrap();
    let at = |number: usize| outer.path().join(number.to_string());
    fs::create_dir(at(0)).unwrap();
    for number in 1..=41 {
        std::os::unix::fs::symlink(at(number - 1), at(number)).unwrap();
    }
    let real = |number| symlink_chain::SymlinkChain::follow(&at(number)).unwrap().real;
    assert_eq!(real(40), Some(at(0).canonicalize().unwrap()));
    assert_eq!(real(41), None);
}

#[test]
fn name_passed_and_reached_has_the_role_of_the_end() {
    let outer = TempDir::new().unwrap();
    fs::create_dir_all(outer.path().join("dir/sub")).unwrap();
    std::os::unix::fs::symlink("dir", outer.path().join("link")).unwrap();
    let role = |path: &str| {
        let entries =
            symlink_chain::SymlinkChain::follow(&outer.path().join(path)).unwrap().entries;
        entries.iter().find(|entry| entry.name == "link").map(|entry| entry.role)
    };
    assert_eq!(role("link"), Some(symlink_chain::Role::End));
    assert_eq!(role("link/../link"), Some(symlink_chain::Role::End));
    assert_eq!(role("link/../link/sub"), Some(symlink_chain::Role::OnTheWay));
}

#[test]
fn only_unreadable_trees_are_hidden() {
    let (_outer, root, rules) = world();
    let hidden = |path: &str| rules.cover(&root.join(path), Reading::Refused);
    assert!(hidden("cache") && !hidden("lib/plugins") && !hidden("ordinary"));
    let protected = |path: &str| rules.cover(&root.join(path), Reading::Allowed);
    assert!(protected("cache") && protected("lib/plugins") && !protected("ordinary"));
}

#[test]
fn directory_inside_a_repository_is_protected() {
    let outer = TempDir::new().unwrap();
    let at = |path: &str| outer.path().canonicalize().unwrap().join(path);
    for repository in [".git", "bare", "separate.git"] {
        for part in ["objects", "refs", "hooks", "rebase-merge/sub"] {
            fs::create_dir_all(at(repository).join(part)).unwrap();
        }
        fs::write(at(repository).join("HEAD"), "ref: refs/heads/main").unwrap();
    }
    for directory in ["src", "bare/main/src", "bare/hooks/tree", "begun/.git/sub", "odd/.git.d"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    for tree in ["bare/main/.git", "bare/hooks/tree/.git"] {
        fs::write(at(tree), "gitdir: elsewhere").unwrap();
    }
    let accepts = |path: &str| {
        let dir = fs::File::open(at(path)).unwrap();
        let rules = ProtectedPaths::new(&dir, &at(path)).unwrap();
        let accepted = rules.check_entry(dir.as_fd(), "new".as_ref()).is_ok();
        let is_bare = path == "bare";
        assert!(is_bare || rules.check_places("new", &at(path)).is_ok() == accepted, "{path}");
        accepted
    };
    for inside in [
        ".git",
        ".git/hooks",
        ".git/rebase-merge/sub",
        "bare",
        "bare/hooks",
        "bare/hooks/tree",
        "bare/rebase-merge",
        "separate.git/refs",
        "begun/.git",
        "begun/.git/sub",
    ] {
        assert!(!accepts(inside), "{inside}");
    }
    for outside in [".", "src", "bare/main", "bare/main/src", "odd", "odd/.git.d"] {
        assert!(accepts(outside), "{outside}");
    }
}
