//! The wishes of a plugin: shown with the command that grants each, and granted by nothing else.

use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use serde_json::{Value, json};
use std::fs;

/// A word of a header that a shell would run.
const HOSTILE: &str = "x-key: $(touch${IFS}owned);'`touch${IFS}owned`'";

fn told(wishes: &Value) -> Told {
    let description = "Answers each question with `done`.".to_owned();
    let metadata = json!({"wishes": wishes, "other": 1}).to_string();
    Told { description, metadata, ..Told::new("probe") }
}

/// Places a plugin with these wishes in a directory of plugins.
fn place(world: &World, wishes: &Value) {
    fs::create_dir_all(world.outer().join("plugins")).unwrap();
    fs::write(world.outer().join("plugins/probe.wasm"), Wat::new(told(wishes)).build()).unwrap();
}

fn program<'w>(world: &'w World, args: &[&str]) -> Program<'w> {
    Program::new(world).args(["--no-builtin", "--plugins", "plugins"]).args(args.iter().copied())
}

/// Runs a command of the program as a person pastes it into a shell.
fn pasted(world: &World, command: &str) {
    let script = format!(
        "own=$0 && workspace=$2 && palisade() {{ \"$own\" --workspace \"$workspace\" \"$@\"; }} && {command}"
    );
    let _ = Program::new(world).through("sh", ["-c", &script]).run().exits_with(0);
}

#[test]
fn wish_is_shown_with_the_command_that_grants_it() {
    let world = World::new();
    let net = ["GET https://api.example.org", "POST http://localhost:3000 private"];
    let secret = json!({"name": "KEY", "host": "api.example.org", "header": HOSTILE});
    place(&world, &json!({"net": net, "env": ["LANG"], "secret": [secret]}));
    let secret = format!("secret KEY for api.example.org as {HOSTILE}");
    let wanted =
        [format!("net {}", net[0]), format!("net {}", net[1]), "env LANG".to_owned(), secret];
    for shown in [
        program(&world, &["inspect", "probe"]).run().exits_with(0).stdout,
        program(&world, &["inspect", "plugins/probe.wasm"]).run().exits_with(0).stdout,
        program(&world, &["approve", "probe", "--yes"]).run().exits_with(0).stdout,
    ] {
        for wish in &wanted {
            assert!(shown.contains(&format!("would like: {wish}")), "{shown}");
        }
        assert!(shown.contains("palisade grant") && shown.contains("net 'GET https://api"));
    }
    let _ = program(&world, &["grant", "list"]).run().stderr_contains(&["no plugin has a grant"]);
    for subject in ["probe", "plugins/probe.wasm"] {
        let inspect = || program(&world, &["inspect", "--json", subject]).run().json();
        for (wish, text) in inspect()["wishes"].as_array().unwrap().iter().zip(&wanted) {
            assert_eq!((&wish["grant"], &wish["granted"]), (&json!(text), &json!(false)));
            pasted(&world, wish["command"].as_str().unwrap());
        }
        let listed = program(&world, &["grant", "list", "--json"]).run().json();
        assert_eq!(listed["grants"][0]["grants"], json!(wanted), "{listed:#}");
        let granted = inspect();
        let granted = granted["wishes"].as_array().unwrap();
        assert!(granted.iter().all(|wish| wish["granted"] == true), "{granted:#?}");
        let shown = program(&world, &["inspect", subject]).run().exits_with(0).stdout;
        assert!(!shown.contains("would like"), "{shown}");
        let _ = program(&world, &["grant", "probe", "revoke"]).run().exits_with(0);
    }
    assert!(!world.outer().join("owned").exists() && !world.root().join("owned").exists());
}

#[test]
fn wish_grants_nothing() {
    let world = World::new();
    let http = r#"(import "wasi:http/types@0.2.0" (instance))"#;
    let wishes = json!({"net": ["GET https://api.example.org"]});
    let plugin = Wat::new(told(&wishes)).importing(http).build();
    fs::create_dir_all(world.outer().join("plugins")).unwrap();
    fs::write(world.outer().join("plugins/probe.wasm"), plugin).unwrap();
    let _ = program(&world, &["call", "probe", "{}"]).run().exits_with(3);
    let listed = program(&world, &["list"]).run().exits_with(0);
    let _ = listed.stderr_contains(&["rejected", "wasi:http"]);
    assert!(!world.home().join(".config/palisade/grants.toml").exists());
}

#[test]
fn wish_without_a_meaning_is_a_finding_and_is_ignored_otherwise() {
    let world = World::new();
    place(&world, &json!({"net": ["GET https://*", "GET\u{1b}[2J https://a.org"], "files": []}));
    let shown = program(&world, &["inspect", "probe"]).run().exits_with(0).stdout;
    assert!(!shown.contains("would like") && !shown.contains('\u{1b}'), "{shown}");
    let ran = Program::new(&world).args(["check", "plugins/probe.wasm", "--json"]).run();
    let report = ran.exits_with(0).json();
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|it| it["code"] == "invalid-wish").unwrap();
    let message = found["message"].as_str().unwrap();
    for part in ["GET https://*", "\\u{1b}[2J", "`files` is none of"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!((&found["tool"], &found["severity"]), (&json!("probe"), &json!("warning")));
}

#[test]
fn changed_wish_is_a_changed_plugin() {
    let world = World::new();
    fs::create_dir_all(world.home().join(".config/palisade")).unwrap();
    let settings = format!("plugins.directories = [\"{}/plugins\"]", world.outer().display());
    fs::write(world.home().join(".config/palisade/palisade.toml"), settings).unwrap();
    let run = |args: &[&str]| Program::new(&world).args(["--no-builtin"]).args(args.to_vec()).run();
    place(&world, &json!({"net": ["GET https://api.example.org"]}));
    let _ = run(&["approve", "probe", "--yes"]).exits_with(0);
    let _ = run(&["call", "probe", "{}"]).exits_with(0);
    place(&world, &json!({"net": ["GET https://api.example.net"]}));
    let _ = run(&["call", "probe", "{}"]).exits_with(4);
    let approved = run(&["approve", "probe", "--yes"]).exits_with(0).stdout;
    let has_line = |sign: &str, part: &str| {
        let mut lines = approved.lines().map(str::trim_start);
        lines.any(|line| line.starts_with(sign) && line.contains(part))
    };
    assert!(has_line("-", "\"GET https://api.example.org\""), "{approved}");
    assert!(has_line("+", "\"GET https://api.example.net\""), "{approved}");
    let wish = "would like: net GET https://api.example.net (`palisade grant probe net";
    assert!(approved.contains(wish), "{approved}");
}
