//! Protected trees, in which no tool changes anything: repositories, plugins, and the host's own
//! files.

use std::fs;
use std::path::Path;
use std::process::Command;

use palisade::{Call, HardLinks, Policy, SideEffects};
use palisade_tests::case::{Plugins, block_on};
use palisade_tests::guest::CONTAINMENT_FILES;
use palisade_tests::{Case, Program, Seen, Stage, World};
use serde_json::json;

fn repositories(world: &World) {
    world
        .file(".git/config", "[core]")
        .file("sub/.git/hooks/pre-commit.sample", "#!/bin/sh")
        .folder("dir");
    world.file("worktree/.git", "gitdir: ../.git/worktrees/w").file("file.txt", "inside");
    world.link("innocent", "sub/.git");
}

fn attempt(op: &str, path: &str, to: &str) -> Seen {
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
fn nothing_is_changed_in_a_repository_and_the_error_names_it() {
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
fn no_tool_plants_a_repository_that_the_users_git_would_obey() {
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
fn two_programs_at_once_plant_no_repository_either() {
    let world = World::new();
    let call = |name: &'static str| {
        let input = json!({"path": format!("docs/{name}"), "content": "ref: refs/heads/main\n"})
            .to_string();
        Program::new(&world).args(["call", "write_file", &input, "--allow", "write"]).run()
    };
    for _ in 0..4 {
        std::thread::scope(|scope| {
            let (one, other) = (scope.spawn(|| call("HEAD")), scope.spawn(|| call("commondir")));
            let codes = [one.join().unwrap().code, other.join().unwrap().code];
            assert!(codes.contains(&0) && codes.contains(&4), "{codes:?}");
        });
        assert_eq!(fs::read_dir(world.root().join("docs")).unwrap().count(), 1);
        fs::remove_dir_all(world.root().join("docs")).unwrap();
    }
}

#[test]
fn an_example_of_a_hook_is_not_renamed_into_a_hook() {
    is_refused(
        "rename",
        "sub/.git/hooks/pre-commit.sample",
        "sub/.git/hooks/pre-commit",
        "sub/.git",
    );
    is_refused("rename", "file.txt", "sub/.git/hooks/pre-commit", "sub/.git");
}

#[test]
fn a_repository_is_neither_moved_away_nor_made() {
    is_refused("rename", ".git", "moved", ".git");
    is_refused("rename", "sub/.git", "moved", "sub/.git");
    for name in ["dir/.git", "dir/.GIT", "dir/GIT~1"] {
        is_refused("mkdir", name, "", name);
        is_refused("create", name, "", name);
        is_refused("rename", "dir/../file.txt", name, name);
    }
}

#[test]
fn a_repository_is_read_and_what_stands_beside_it_is_changed() {
    assert_eq!(attempt("read", ".git/config", "").output(), "[core]");
    assert_eq!(attempt("list", "innocent", "").output(), "hooks");
    attempt("write", "sub/file.txt", "").modified(&["sub/file.txt"]);
    attempt("write", ".gitignore", "").modified(&[".gitignore"]);
    attempt("rename", "sub", "other").left("other/.git/hooks/pre-commit.sample", Some("#!/bin/sh"));
}

#[test]
fn the_shipped_tools_are_held_to_it_as_well() {
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

/// Returns a workspace that holds the plugin that is called in it.
fn with_plugins() -> World {
    let world = World::new();
    world.folder("lib/plugins");
    fs::copy(CONTAINMENT_FILES.file(), world.root().join("lib/plugins/containment_files.wasm"))
        .unwrap();
    world
}

#[test]
fn a_tool_changes_no_plugin_that_lies_in_the_workspace() {
    let world = with_plugins();
    let before = world.inside();
    for (op, path, to) in [
        ("write", "lib/plugins/containment_files.wasm", ""),
        ("create", "lib/plugins/evil.wasm", ""),
        ("rename", "lib", "other"),
        ("rename", "lib/plugins", "other"),
        ("mkdir", "lib/plugins/new", ""),
    ] {
        let input = json!({"op": op, "path": path, "to": to});
        let program = Program::new(&world)
            .args([
                "call",
                "in_write",
                "-",
                "--json",
                "--allow",
                "write",
                "--no-builtin",
                "--plugins",
            ])
            .args([world.root().join("lib/plugins")])
            .stdin(input.to_string());
        let result = program.run().left_with(4).json();
        assert_eq!(
            result["error"]["detail"],
            json!({"reason": "protected", "tree": "lib/plugins"}),
            "{op} {path}"
        );
    }
    assert_eq!(world.inside(), before);
}

#[test]
fn a_plugin_that_lies_elsewhere_in_the_workspace_is_as_protected_as_its_directory() {
    let world = World::new();
    world
        .folder("real")
        .folder("target")
        .link("plugs", "real")
        .link("real/containment_files.wasm", "../target/mine.wasm");
    fs::copy(CONTAINMENT_FILES.file(), world.root().join("target/mine.wasm")).unwrap();
    fs::write(world.root().join("target/second.wasm"), "no plugin").unwrap();
    fs::hard_link(world.root().join("target/second.wasm"), world.root().join("real/second.wasm"))
        .unwrap();
    fs::write(world.home().join("own.toml"), "[workspace]\nhard_links = \"allow\"").unwrap();
    let before = world.inside();
    for (op, path, to) in [
        ("rename", "plugs", "away"),
        ("unlink", "plugs", ""),
        ("append", "target/mine.wasm", ""),
        ("append", "target/second.wasm", ""),
        ("unlink", "target/mine.wasm", ""),
        ("rename", "target", "away"),
    ] {
        let program = Program::new(&world)
            .args([
                "call",
                "in_write",
                "-",
                "--json",
                "--allow",
                "write",
                "--no-builtin",
                "--plugins",
            ])
            .args([world.root().join("plugs"), "--config".into(), world.home().join("own.toml")])
            .stdin(json!({"op": op, "path": path, "to": to}).to_string());
        let result = program.run().left_with(4).json();
        assert_eq!(result["error"]["detail"]["reason"], "protected", "{op} {path}");
    }
    assert_eq!(world.inside(), before);
}

#[test]
fn the_user_s_settings_behind_a_link_are_not_replaced() {
    let world = World::new();
    world.file("dotfiles/palisade.toml", "").file("notes.toml", "[limits]").folder("settings");
    world.link("settings/palisade.toml", "../dotfiles/palisade.toml");
    let before = world.inside();
    for (op, path, to) in [
        ("rename", "notes.toml", "settings/palisade.toml"),
        ("rename", "settings", "away"),
        ("unlink", "settings/palisade.toml", ""),
        ("write", "dotfiles/palisade.toml", ""),
    ] {
        let program = Program::new(&world)
            .args([
                "call",
                "in_write",
                "-",
                "--json",
                "--allow",
                "write",
                "--no-builtin",
                "--plugins",
            ])
            .args([
                CONTAINMENT_FILES.directory(),
                "--config".into(),
                world.root().join("settings/palisade.toml"),
            ])
            .stdin(json!({"op": op, "path": path, "to": to}).to_string());
        let result = program.run().left_with(4).json();
        let expected = json!({"reason": "protected", "tree": "dotfiles/palisade.toml"});
        assert_eq!(result["error"]["detail"], expected, "{op} {path}");
    }
    assert_eq!(world.inside(), before);
}

#[test]
fn what_is_the_program_s_own_is_neither_changed_nor_read() {
    let world = World::new();
    world.file("own.toml", "").file("palisade.toml", "[limits]\nmemory = \"64MiB\"");
    let call = |op: &str, path: &str| {
        let program = Program::new(&world)
            .args([
                "call",
                "in_write",
                "-",
                "--json",
                "--allow",
                "write",
                "--no-builtin",
                "--plugins",
            ])
            .args([CONTAINMENT_FILES.directory()])
            .args([
                "--config".into(),
                world.root().join("own.toml"),
                "--events".into(),
                world.root().join("log.jsonl"),
            ])
            .stdin(json!({"op": op, "path": path}).to_string());
        program.run().json()
    };
    for (op, path) in [
        ("read", "own.toml"),
        ("write", "own.toml"),
        ("read", "log.jsonl"),
        ("truncate", "log.jsonl"),
        ("unlink", "log.jsonl"),
        ("write", "palisade.toml"),
        ("unlink", "palisade.toml"),
    ] {
        assert_eq!(
            call(op, path)["error"]["detail"],
            json!({"reason": "protected", "tree": path}),
            "{op} {path}"
        );
    }
    assert_eq!(call("read", "palisade.toml")["output"], "[limits]\nmemory = \"64MiB\"");
    fs::remove_file(world.root().join("palisade.toml")).unwrap();
    assert_eq!(
        call("create", "palisade.toml")["error"]["detail"]["tree"],
        "palisade.toml",
        "it is not made either"
    );
    assert!(world.read("log.jsonl").is_some_and(|log| log.contains("tool.failed")));
}

#[test]
fn an_embedder_protects_and_hides_what_it_likes() {
    let world = World::new();
    world.file("kept/a", "a").file("hidden/b", "b");
    let builder =
        Case::new(CONTAINMENT_FILES, "in_write").allow(SideEffects::Write).builder(&world);
    let host = builder
        .protect(world.root().join("kept"))
        .hide(world.root().join("hidden"))
        .build()
        .unwrap();
    let call = |op: &str, path: &str| {
        let call = Call::new("in_write", json!({"op": op, "path": path}));
        block_on(host.dispatch(host.session(), call)).to_json()
    };
    assert_eq!(call("write", "kept/a")["error"]["detail"]["tree"], "kept");
    assert_eq!(call("read", "kept/a")["output"], "a");
    assert_eq!(call("read", "hidden/b")["error"]["detail"]["tree"], "hidden");
    assert_eq!(call("write", "other")["success"], true);
}

/// Creates a file with a second hard link elsewhere, as in a package manager's store.
fn stored(world: &World) {
    fs::write(world.home().join("store"), "shared").unwrap();
    fs::hard_link(world.home().join("store"), world.root().join("package")).unwrap();
}

#[track_caller]
fn the_store_is_what_it_was(seen: &Seen) {
    for world in seen.worlds() {
        assert_eq!(fs::read_to_string(world.home().join("store")).unwrap(), "shared");
    }
}

#[test]
fn a_file_with_another_name_elsewhere_is_read_and_not_changed_in_place() {
    for op in ["write", "append", "truncate", "touch"] {
        let case =
            Case::new(CONTAINMENT_FILES, "in_write").input(json!({"op": op, "path": "package"}));
        let seen = case.allow(SideEffects::Write).arrange(stored).check();
        assert!(seen.message("permission_denied").contains("workspace.hard_links"), "{op}");
        seen.changed_nothing().modified(&[]);
        the_store_is_what_it_was(&seen);
    }
    let case =
        Case::new(CONTAINMENT_FILES, "in_read").input(json!({"op": "read", "path": "package"}));
    assert_eq!(case.arrange(stored).check().output(), "shared");
}

#[test]
fn a_file_with_another_name_elsewhere_is_replaced_as_a_whole() {
    let input = json!({"path": "package", "content": "own"});
    let case = Case::new(Plugins::Shipped, "write_file")
        .input(input)
        .allow(SideEffects::Write)
        .arrange(stored);
    let seen = case.check();
    seen.left("package", Some("own")).modified(&["package"]);
    the_store_is_what_it_was(&seen);
}

#[test]
fn the_operator_may_allow_files_with_several_names() {
    let world = World::new();
    world.file("one", "shared");
    fs::hard_link(world.root().join("one"), world.root().join("two")).unwrap();
    let append = |hard_links| {
        let builder =
            Case::new(CONTAINMENT_FILES, "in_write").allow(SideEffects::Write).builder(&world);
        let host = builder.hard_links(hard_links).build().unwrap();
        let call = Call::new("in_write", json!({"op": "append", "path": "one"}));
        block_on(host.dispatch(host.session(), call)).is_success()
    };
    assert!(!append(HardLinks::Refuse));
    assert!(append(HardLinks::Allow));
    assert_eq!(world.read("two").as_deref(), Some("shared+"));
    fs::write(world.home().join("own.toml"), "[workspace]\nhard_links = \"allow\"").unwrap();
    let program = Program::new(&world)
        .args(["call", "in_write", "-", "--allow", "write", "--no-builtin", "--plugins"])
        .args([CONTAINMENT_FILES.directory(), "--config".into(), world.home().join("own.toml")])
        .stdin(json!({"op": "link", "path": "one", "to": "three"}).to_string());
    let _ = program.run().left_with(0);
    assert_eq!(world.read("three").as_deref(), Some("shared+"));
}

#[test]
fn no_tool_makes_a_second_name() {
    let seen = attempt("link", "file.txt", "second");
    assert!(seen.message("permission_denied").contains("hard links cannot be created"));
    seen.changed_nothing();
}
