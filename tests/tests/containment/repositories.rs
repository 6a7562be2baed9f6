//! Repositories in the workspace: no tool changes one, moves one away or makes one.

use std::fs;
use std::path::Path;
use std::process::Command;

use palisade::{SideEffects, policy::Policy};
use palisade_tests::case::{Plugins, block_on};
use palisade_tests::guest::CONTAINMENT_FILES;
use palisade_tests::{Case, Observed, Program, Stage, World};
use serde_json::json;

fn repositories(world: &World) {
    world
        .file(".git/config", "[core]")
        .file("sub/.git/hooks/pre-commit.sample", "#!/bin/sh")
        .folder("dir");
    world.file("worktree/.git", "gitdir: ../.git/worktrees/w").file("file.txt", "inside");
    world.link("innocent", "sub/.git");
}

fn attempt(op: &str, path: &str, to: &str) -> Observed {
    let case =
        Case::new(CONTAINMENT_FILES, "in_write").input(json!({"op": op, "path": path, "to": to}));
    case.allow(SideEffects::Write).arrange(repositories).check()
}

#[track_caller]
fn is_refused(op: &str, path: &str, to: &str, tree: &str) {
    let seen = attempt(op, path, to);
    let error = seen.error("permission_denied");
    assert_eq!(error["detail"], json!({"reason": "protected", "tree": tree}), "{op} {path} {to}");
    assert!(error["message"].as_str().unwrap().contains(tree));
    seen.changed_nothing().modified(&[]);
}

#[test]
fn repository_cannot_be_changed_and_the_error_names_it() {
    for op in ["write", "append", "truncate", "touch", "unlink"] {
        is_refused(op, ".git/config", "", ".git");
    }
    is_refused("create", "sub/.git/hooks/pre-commit", "", "sub/.git");
    is_refused("mkdir", "sub/.git/hooks/new", "", "sub/.git");
    is_refused("rmdir", "sub/.git/hooks", "", "sub/.git");
    is_refused("write", "innocent/config", "", "sub/.git");
    is_refused("write", "worktree/.git", "", "worktree/.git");
}

/// Returns whether git recognizes a directory as a repository.
fn is_repository(directory: &Path, within: &Path) -> bool {
    let mut git = Command::new("git");
    git.args(["rev-parse", "--git-dir"])
        .current_dir(directory)
        .env("GIT_CEILING_DIRECTORIES", within);
    git.env_remove("GIT_DIR").env("HOME", within);
    git.output().is_ok_and(|ran| ran.status.success())
}

#[test]
fn planted_repository_is_refused() {
    let allowing = Policy::default().allowing(SideEffects::Write);
    let stage = Stage::new(&[], |builder| builder.policy(allowing));
    let head = "ref: refs/heads/main\n";
    let planted = [
        // The parts of a repository in one directory, and split over two that are both incomplete.
        (
            "docs",
            vec![
                ("config", "[core]\n\tfsmonitor = ./x\n"),
                ("objects/x", ""),
                ("refs/x", ""),
                ("HEAD", head),
            ],
        ),
        (
            "docs2",
            vec![
                ("HEAD", head),
                ("config", "[core]\n\tbare = false\n"),
                ("refs/x", ""),
                ("objects/x", ""),
            ],
        ),
        (
            "gd",
            vec![
                ("../store/objects/x", ""),
                ("../store/refs/x", ""),
                ("commondir", "../store"),
                ("HEAD", head),
            ],
        ),
        ("gd2", vec![("HEAD", head), ("config.worktree", ""), ("commondir", "../store")]),
    ];
    for (directory, files) in planted {
        let write = |(name, content): &(&str, &str)| {
            let input = json!({"path": format!("{directory}/{name}"), "content": content});
            block_on(stage.host.call("write_file", input, json!({})))
        };
        let results: Vec<_> = files.iter().map(write).collect();
        let refused: Vec<_> = results.iter().filter_map(|result| result.error()).collect();
        assert!(!refused.is_empty(), "{directory}");
        for error in refused {
            assert_eq!(error.to_json()["detail"], json!({"reason": "protected"}), "{error}");
            assert!(error.to_string().contains("repository"), "{error}");
        }
        assert!(
            !is_repository(&stage.world.root().join(directory), &stage.world.root()),
            "{directory}"
        );
    }
    // Positive control: `is_repository` recognizes a real bare repository.
    let own = stage.world.root().join("own");
    let made = Command::new("git").args(["init", "--quiet", "--bare"]).arg(&own).status();
    if !made.is_ok_and(|status| status.success()) {
        return palisade_tests::skip("git is not installed");
    }
    assert!(is_repository(&own, &stage.world.root()));
    let result = block_on(stage.host.call(
        "write_file",
        json!({"path": "own/config", "content": "x"}),
        json!({}),
    ));
    assert_eq!(
        result.error().unwrap().to_json()["detail"],
        json!({"reason": "protected"}),
        "{result}"
    );
}

#[test]
fn two_concurrent_programs_cannot_plant_a_repository() {
    let world = World::new();
    let call = |name: &'static str| {
        let input = json!({"path": format!("docs/{name}"), "content": "ref: refs/heads/main\n"})
            .to_string();
        Program::new(&world).args(["call", "write_file", &input, "--allow", "write"]).run()
    };
    for _ in 0..4 {
        std::thread::scope(|scope| {
            let one = scope.spawn(|| call("HEAD"));
            let other = scope.spawn(|| call("commondir"));
            let codes = [one.join().unwrap().code, other.join().unwrap().code];
            assert!(codes.contains(&0) && codes.contains(&4), "{codes:?}");
        });
        assert_eq!(fs::read_dir(world.root().join("docs")).unwrap().count(), 1);
        fs::remove_dir_all(world.root().join("docs")).unwrap();
    }
}

#[test]
fn example_hook_cannot_be_renamed_to_a_hook() {
    is_refused(
        "rename",
        "sub/.git/hooks/pre-commit.sample",
        "sub/.git/hooks/pre-commit",
        "sub/.git",
    );
    is_refused("rename", "file.txt", "sub/.git/hooks/pre-commit", "sub/.git");
}

#[test]
fn repository_can_neither_be_moved_nor_created() {
    is_refused("rename", ".git", "moved", ".git");
    is_refused("rename", "sub/.git", "moved", "sub/.git");
    for name in ["dir/.git", "dir/.GIT", "dir/GIT~1"] {
        is_refused("mkdir", name, "", name);
        is_refused("create", name, "", name);
        is_refused("rename", "dir/../file.txt", name, name);
    }
}

#[test]
fn repository_is_readable_and_its_siblings_changeable() {
    assert_eq!(attempt("read", ".git/config", "").output(), "[core]");
    assert_eq!(attempt("list", "innocent", "").output(), "hooks");
    attempt("write", "sub/file.txt", "").modified(&["sub/file.txt"]);
    attempt("write", ".gitignore", "").modified(&[".gitignore"]);
    attempt("rename", "sub", "other").left("other/.git/hooks/pre-commit.sample", Some("#!/bin/sh"));
}

#[test]
fn shipped_tools_obey_the_same_protection() {
    for (tool, input) in [
        ("write_file", json!({"path": ".git/config", "content": "x"})),
        (
            "patch_file",
            json!({"path": "sub/.git/hooks/pre-commit.sample", "old": "sh", "new": "evil"}),
        ),
        ("delete_file", json!({"path": ".git/config"})),
    ] {
        let case = Case::new(Plugins::Shipped, tool)
            .input(input)
            .allow(SideEffects::Write)
            .arrange(repositories);
        let seen = case.check();
        assert_eq!(seen.error("permission_denied")["detail"]["reason"], "protected", "{tool}");
        seen.changed_nothing();
    }
}
