//! Protected trees other than repositories: plugins, settings, and the host's own files.

use std::fs;

use palisade::{Call, SideEffects};
use palisade_tests::case::block_on;
use palisade_tests::guest::CONTAINMENT_FILES;
use palisade_tests::{Case, Program, World};
use serde_json::json;

/// Returns a workspace that holds the plugin that is called in it.
fn with_plugins() -> World {
    let world = World::new();
    world.folder("lib/plugins");
    fs::copy(CONTAINMENT_FILES.file(), world.root().join("lib/plugins/containment_files.wasm"))
        .unwrap();
    world
}

#[test]
fn plugin_in_the_workspace_cannot_be_changed() {
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
        let result = program.run().exits_with(4).json();
        assert_eq!(
            result["error"]["detail"],
            json!({"reason": "protected", "tree": "lib/plugins"}),
            "{op} {path}"
        );
    }
    assert_eq!(world.inside(), before);
}

#[test]
fn plugin_elsewhere_in_the_workspace_is_protected() {
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
        let result = program.run().exits_with(4).json();
        assert_eq!(result["error"]["detail"]["reason"], "protected", "{op} {path}");
    }
    assert_eq!(world.inside(), before);
}

#[test]
fn linked_user_settings_cannot_be_replaced() {
    let world = World::new();
    world.file("dotfiles/palisade.toml", "").file("notes.toml", "[limits]").folder("settings");
    world.link("settings/palisade.toml", "../dotfiles/palisade.toml");
    let before = world.inside();
    let (link, target) = ("settings/palisade.toml", "dotfiles/palisade.toml");
    for (op, path, to, tree) in [
        ("rename", "notes.toml", link, link),
        ("rename", "settings", "away", target),
        ("unlink", link, "", link),
        ("write", target, "", target),
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
        let result = program.run().exits_with(4).json();
        let expected = json!({"reason": "protected", "tree": tree});
        assert_eq!(result["error"]["detail"], expected, "{op} {path}");
    }
    assert_eq!(world.inside(), before);
}

#[test]
fn program_state_can_neither_be_changed_nor_read() {
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
        "it is not created either"
    );
    assert!(world.read("log.jsonl").is_some_and(|log| log.contains("tool.failed")));
}

#[test]
fn embedder_may_protect_and_hide_paths() {
    let world = World::new();
    world.file("kept/a", "a").file("hidden/b", "b");
    let builder =
        Case::new(CONTAINMENT_FILES, "in_write").allow(SideEffects::Write).builder(&world);
    let host = builder
        .protect(world.root().join("kept"))
        .deny_read(world.root().join("hidden"))
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
