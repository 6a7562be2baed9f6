//! Path rules of the operator: no tool reaches a denied path, and every other one works as before.

use std::fs;

use palisade::workspace::{Commands, PathRules};
use palisade::{Call, Host, SideEffects, ToolResult};
use palisade_tests::case::{Plugins, block_on};
use palisade_tests::guest::CONTAINMENT_FILES;
use palisade_tests::program::Ran;
use palisade_tests::{Case, Program, World};
use serde_json::{Value, json};

/// The content of denied files.
const DENIED: &str = "denied content";

fn furnished() -> World {
    let world = World::new();
    world
        .file("src/main.rs", "main")
        .file("src/.env.local", DENIED)
        .file("secrets/key", DENIED)
        .link("to-key", "secrets/key")
        .link("src/to-secrets", "../secrets");
    world
}

fn rules(allow: Option<&[&str]>, deny: &[&str]) -> PathRules {
    let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    PathRules::new(allow.map(owned).as_deref(), &owned(deny)).unwrap()
}

fn host(world: &World, rules: &PathRules) -> Host {
    let case = Case::new(CONTAINMENT_FILES, "in_write").allow(SideEffects::Write);
    case.builder(world).path_rules(rules).build().unwrap()
}

fn call(host: &Host, tool: &str, input: Value) -> ToolResult {
    block_on(host.dispatch(host.session(), Call::new(tool, input)))
}

#[track_caller]
fn refused(result: &ToolResult) {
    let json = result.to_json();
    assert_eq!(json["error"]["class"], "permission_denied", "{json}");
    assert_eq!(json["error"]["detail"]["reason"], "path_rules", "{json}");
    assert!(!json.to_string().contains(DENIED), "{json}");
}

#[test]
fn a_guest_neither_reads_nor_changes_a_denied_path() {
    let world = furnished();
    let host = host(&world, &rules(None, &["secrets/**", "**/.env*"]));
    let denied = ["secrets/key", "secrets/none", "src/.env.local", "to-key", "src/to-secrets/key"];
    for path in denied {
        for op in ["read", "stat"] {
            refused(&call(&host, "in_read", json!({"op": op, "path": path})));
        }
        for op in ["write", "append", "truncate", "touch"] {
            refused(&call(&host, "in_write", json!({"op": op, "path": path})));
        }
    }
    refused(&call(&host, "in_read", json!({"op": "list", "path": "src/to-secrets"})));
    let rename = json!({"op": "rename", "path": "secrets", "to": "open"});
    refused(&call(&host, "in_write", rename));
    let rename = json!({"op": "rename", "path": "src", "to": "open"});
    refused(&call(&host, "in_write", rename));
    assert_eq!(world.read("secrets/key").as_deref(), Some(DENIED));
    assert_eq!(world.read("src/.env.local").as_deref(), Some(DENIED));
    assert!(!world.root().join("secrets/none").exists());
    let read = call(&host, "in_read", json!({"op": "read", "path": "src/main.rs"}));
    assert_eq!(read.output().as_deref(), Some("main"));
    let listed = call(&host, "in_read", json!({"op": "list", "path": "src"}));
    assert!(!listed.to_string().contains(".env"), "{listed}");
    let written = call(&host, "in_write", json!({"op": "write", "path": "src/new.rs"}));
    assert!(written.is_success(), "{written}");
}

#[test]
fn a_shipped_tool_reports_the_refusal_and_finds_nothing_that_is_denied() {
    let world = furnished();
    let case = Case::new(Plugins::Shipped, "read_file");
    let host = case.builder(&world).path_rules(&rules(None, &["secrets/**"])).build().unwrap();
    let read = call(&host, "read_file", json!({"path": "secrets/key"}));
    refused(&read);
    assert!(read.to_string().contains("`secrets/key`"), "{read}");
    refused(&call(&host, "read_file", json!({"path": "to-key"})));
    assert!(call(&host, "read_file", json!({"path": "src/main.rs"})).is_success());
    let found = call(&host, "search_files", json!({"pattern": "content"}));
    assert!(!found.to_json().to_string().contains("secrets"), "{found}");
}

#[test]
fn no_race_of_links_reads_a_denied_file() {
    let world = World::new();
    world.file("open/file", "open").file("secrets/file", DENIED).link("turning", "open");
    let host = host(&world, &rules(None, &["secrets/**"]));
    let mut read = 0;
    let root = world.root();
    super::races::race(
        super::races::ROUNDS,
        |turn| super::races::relink(&root, "turning", ["open", "secrets"][turn % 2]),
        || {
            let result = call(&host, "in_read", json!({"op": "read", "path": "turning/file"}));
            assert!(!result.to_json().to_string().contains(DENIED), "{result}");
            read += usize::from(result.is_success());
            std::ops::ControlFlow::Continue(())
        },
    );
    assert!(read > 0, "sometimes the link led to the open directory");
}

/// Runs a call of the program under the settings of the user and of the project.
fn program(world: &World, user: &str, project: &str, arguments: &[&str]) -> Ran {
    let own = world.home().join("own.toml");
    fs::write(&own, user).unwrap();
    fs::write(world.root().join("palisade.toml"), project).unwrap();
    let own = own.to_str().unwrap();
    Program::new(world).args(["--config", own]).args(arguments).run()
}

const READ: [&str; 3] = ["call", "read_file", r#"{"path": "src/main.rs"}"#];
const READ_KEY: [&str; 3] = ["call", "read_file", r#"{"path": "secrets/key"}"#];

#[test]
fn the_users_file_denies_paths_and_names_the_setting() {
    let world = furnished();
    let user = "[paths]\ndeny = [\"secrets/**\"]";
    assert_eq!(program(&world, user, "", &READ).exits_with(0).stdout, "main");
    let ran = program(&world, user, "", &READ_KEY).exits_with(4);
    assert!(ran.stderr.contains("the path rules leave `secrets` out"), "{}", ran.stderr);
    assert!(ran.stderr.contains("paths.deny"), "{}", ran.stderr);
    let _ = program(&world, "", "", &READ_KEY).exits_with(0);
}

#[test]
fn a_project_adds_denials_and_narrows_what_is_allowed() {
    let world = furnished();
    let user = "[paths]\nallow = [\"src/**\", \"secrets/**\"]";
    let _ = program(&world, user, "", &READ_KEY).exits_with(0);
    for project in [
        "[paths]\ndeny = [\"secrets/**\"]",
        "[paths]\nallow = [\"src/**\"]",
        // A path that the user leaves out stays left out.
        "[paths]\nallow = [\"src/**\", \"notes/**\"]",
    ] {
        let _ = program(&world, user, project, &READ_KEY).exits_with(4);
        let _ = program(&world, user, project, &READ).exits_with(0);
    }
    let ran = program(&world, user, "[paths]\ncommands = \"allow\"", &READ).exits_with(2);
    assert!(ran.stderr.contains("paths.commands"), "{}", ran.stderr);
}

#[test]
fn a_bad_pattern_is_refused_with_its_key_and_reason() {
    let world = furnished();
    for (settings, reason) in [
        ("[paths]\ndeny = [\"/etc\"]", "`paths.deny`: the pattern `/etc` is not accepted"),
        ("[paths]\nallow = [\"[a\"]", "`paths.allow`"),
        ("[paths]\ncommands = \"some\"", "refuse and allow"),
    ] {
        let ran = program(&world, settings, "", &READ).exits_with(2);
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    }
}

#[test]
fn the_settings_and_the_explanation_show_the_rules() {
    let world = furnished();
    let user = "[paths]\nallow = [\"src/**\"]\ndeny = [\"**/.env*\", \"x\"]";
    let ran = program(&world, user, "", &["config", "show"]).exits_with(0);
    for shown in ["paths.allow", "src/**", "paths.deny", "**/.env*, x", "paths.commands"] {
        assert!(ran.stdout.contains(shown), "{shown}: {}", ran.stdout);
    }
    let explain = ["policy", "explain", "read_file", r#"{"path": "secrets/key"}"#];
    let ran = program(&world, user, "", &explain).exits_with(4);
    let said = ran.stdout + &ran.stderr;
    assert!(said.contains("the path rules leave `secrets/key` out"), "{said}");
}

#[test]
fn commands_are_refused_under_path_rules_unless_the_operator_allows_them() {
    let world = furnished();
    let build = |rules: &PathRules, commands| {
        let case = Case::new(Plugins::Shipped, "shell").allow(SideEffects::Execute);
        case.builder(&world).path_rules(rules).commands(commands).build().unwrap()
    };
    let run = |host: &Host| call(host, "shell", json!({"command": "echo ran > ran"}));
    let denied = rules(None, &["secrets/**"]);
    let result = run(&build(&denied, Commands::Refuse));
    refused(&result);
    assert!(result.to_string().contains("path rules"), "{result}");
    assert!(!world.root().join("ran").exists());
    // Whether this machine can confine the command is another question, which comes later.
    for host in [build(&denied, Commands::Allow), build(&PathRules::default(), Commands::Refuse)] {
        let reason = run(&host).to_json()["error"]["detail"]["reason"].clone();
        assert_ne!(reason, "path_rules");
    }
    let user = "[paths]\ndeny = [\"secrets/**\"]";
    let command = ["call", "shell", r#"{"command": "true"}"#, "--allow", "execute"];
    let ran = program(&world, user, "", &command).exits_with(4);
    assert!(ran.stderr.contains("paths.commands"), "{}", ran.stderr);
}
