//! Promises of the program about approvals.

use crate::terminal::Terminal;
use crate::{approve, configuration, lock, plugin, program};
use palisade_tests::program::finish;
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const QUESTION: &str = "Approve `git`? [y]es, [N]o: ";

fn with_git() -> World {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let _ = program(&world, &["list"]);
    world
}

#[test]
fn call_at_a_terminal_asks_once_with_all_words() {
    for (keys, code) in [("y\n", 0), ("n\n", 4), ("\n", 4)] {
        let world = with_git();
        let mut terminal = Terminal::new();
        let child = terminal.start(&world, &["call", "look"]);
        terminal.shows(QUESTION);
        terminal.types(keys);
        let ran = finish(child).exits_with(code);
        let transcript = terminal.transcript();
        for part in ["`git`: it is new.", "Looks at things.", "class    read", "sha256:"] {
            assert!(transcript.contains(part), "{part}: {transcript}");
        }
        assert_eq!(transcript.matches("Approve").count(), 1, "{transcript}");
        assert_eq!(ran.stdout, if code == 0 { "done" } else { "" });
        let later = program(&world, &["call", "look"]).run();
        assert_eq!(later.code, code, "{later:?}");
    }
}

#[test]
fn plugin_of_this_run_alone_is_not_said_to_be_lost() {
    let world = with_git();
    let told = |name: &str| Told { class: 1, ..Told::new(name) };
    world.install("git", &Wat::with_tools(vec![told("look"), told("sum")]).build());
    let other = world.outer().join("other");
    fs::create_dir(&other).unwrap();
    for name in ["csv", "far"] {
        let tool = if name == "csv" { "sum" } else { "far" };
        fs::write(other.join(format!("{name}.wasm")), plugin(tool).build()).unwrap();
    }
    let mut terminal = Terminal::new();
    let other = other.to_str().unwrap();
    let child = terminal.start(&world, &["call", "look", "--plugins", other]);
    terminal.shows(QUESTION);
    terminal.types("n\n");
    let _ = finish(child).exits_with(4);
    let transcript = terminal.transcript();
    assert!(!transcript.contains("`far`"), "{transcript}");
}

#[test]
fn approve_shows_what_changed_and_asks() {
    let world = with_git();
    approve(&world);
    let told = Told { description: "Looks, and sends.".to_owned(), class: 2, ..Told::new("look") };
    world.install("git", &Wat::new(told).build());
    let mut terminal = Terminal::new();
    let child = terminal.start(&world, &["approve"]);
    terminal.shows(QUESTION);
    terminal.types("y\n");
    let ran = finish(child).exits_with(0);
    for part in [
        "it has changed since it was approved",
        "class    read → write, which is WIDER",
        "- Looks at things.",
        "+ Looks, and sends.",
        "signature  not verified: no key is configured",
        "`git` is approved.",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    let ran = program(&world, &["approve"]).run().exits_with(0);
    assert_eq!(ran.stdout, "Every plugin is approved.\n");
}

#[test]
fn approve_without_a_terminal_needs_yes_and_json_changes_nothing() {
    let world = with_git();
    let ran = program(&world, &["approve"]).run().exits_with(4);
    ran.stderr_contains(&[
        "there is no terminal for the question; with its name, --yes approves what is shown",
    ]);
    let shown = program(&world, &["approve", "--json"]).run().exits_with(0).json();
    assert_eq!((&shown[0]["plugin"], &shown[0]["state"]), (&"git".into(), &"new".into()));
    assert_eq!(shown[0]["tools"][0]["class"], "read");
    assert!(!lock(&world).exists());
    program(&world, &["approve", "nothing", "--yes"])
        .run()
        .exits_with(3)
        .stderr_contains(&["there is no plugin `nothing`; `"]);
    program(&world, &["approve", "gitt", "--yes"])
        .run()
        .exits_with(3)
        .stderr_contains(&["there is no plugin `gitt`; did you mean `git`?"]);
    let _ = program(&world, &["approve", "git", "--yes"]).run().exits_with(0);
    let mode = lock(&world).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    program(&world, &["revoke", "gitt"])
        .run()
        .exits_with(3)
        .stderr_contains(&["or waits for an approval; did you mean `git`?"]);
    program(&world, &["revoke", "files"])
        .run()
        .exits_with(3)
        .stderr_contains(&["`files` ships with this program and needs no approval"]);
}

#[test]
fn locked_run_loads_nothing_else_and_never_asks() {
    let world = with_git();
    let ran = program(&world, &["list", "--locked"]).run().exits_with(0);
    ran.stderr_contains(&["git.wasm: it is not approved: it is new"]);
    let terminal = Terminal::new();
    let child = terminal.start(&world, &["call", "look", "--locked"]);
    let _ = finish(child).exits_with(3);
    let transcript = terminal.transcript();
    assert!(!transcript.contains("Approve"), "{transcript}");
    let _ = program(&world, &["approve", "--locked"]).run().exits_with(2);
    approve(&world);
    let _ = program(&world, &["call", "look", "--locked"]).run().exits_with(0);
    let words = ["list", "--locked", "--strict", "--plugins"];
    let other = world.outer().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("csv.wasm"), plugin("sum").build()).unwrap();
    let _ = program(&world, &words).args([&other]).run().exits_with(6);
}

#[test]
fn directory_of_the_command_line_is_loaded_without_its_rules() {
    let world = World::new();
    let told = Told { class: 2, ..Told::new("look") };
    world.install("git", &Wat::new(told).build());
    let folder = world.home().join(".config/palisade");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("palisade.toml"), "[confirm.tools]\n\"git/look\" = \"auto\"\n").unwrap();
    let plugins = world.plugins();
    let words = ["call", "look", "--plugins", plugins.to_str().unwrap()];
    program(&world, &words).run().exits_with(4).stderr_contains(&[
        "was named for this run only; `palisade approve git` shows it and asks",
    ]);
    let _ = program(&world, &words).args(["--allow", "write"]).run().exits_with(0);
    let yes = ["approve", "git", "--yes", "--plugins", plugins.to_str().unwrap()];
    let _ = program(&world, &yes).run().exits_with(0);
    let _ = program(&world, &words).run().exits_with(0);
}

#[test]
fn tool_without_approval_is_inspected_and_explained() {
    let world = with_git();
    let ran = program(&world, &["inspect", "look"]).run().exits_with(0);
    ran.stderr_contains(&["it is not approved: it is new; `palisade approve git`"]);
    assert!(ran.stdout.contains("Looks at things."), "{ran:?}");
    let shown = program(&world, &["inspect", "look", "--json"]).run().exits_with(0).json();
    assert_eq!(shown["approved"], false);
    program(&world, &["policy", "explain", "look"])
        .run()
        .exits_with(4)
        .stderr_contains(&["not approved"]);
    let report = program(&world, &["doctor", "--json"]).run().json();
    let checks = report["checks"].as_array().unwrap().iter();
    let mut states = checks.filter(|check| check["found"].as_str().unwrap().contains("git.wasm"));
    assert_eq!(states.next().unwrap()["state"], "note", "{report:#}");
}

#[test]
fn lock_that_others_can_change_is_refused_and_no_tool_can_change_it() {
    let world = with_git();
    approve(&world);
    fs::set_permissions(lock(&world), fs::Permissions::from_mode(0o666)).unwrap();
    program(&world, &["list"]).run().exits_with(2).stderr_contains(&["chmod go-w"]);
    fs::set_permissions(lock(&world), fs::Permissions::from_mode(0o600)).unwrap();
    let home = world.root();
    let own = home.join(".config/palisade");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("palisade.toml"), configuration(&world)).unwrap();
    for (tool, path) in [
        ("write_file", ".config/palisade/palisade.lock"),
        ("write_file", "palisade.lock"),
        ("read_file", ".config/palisade/palisade.lock"),
    ] {
        let input = match tool {
            "write_file" => format!(r#"{{"path": "{path}", "content": "version = 1"}}"#),
            _ => format!(r#"{{"path": "{path}"}}"#),
        };
        let words = ["call", tool, "--allow", "write", &input];
        let ran = program(&world, &words).env("HOME", &home).run();
        assert_ne!(ran.code, 0, "{tool} {path}: {ran:?}");
        assert!(!home.join(path).exists(), "{tool} {path}");
    }
}

#[test]
fn unwritable_words_about_approvals_are_1() {
    let world = with_git();
    approve(&world);
    let key = world.outer().join("author.key");
    let key = key.to_str().unwrap();
    for words in [&["revoke", "git"][..], &["sign", "--generate", "--no-password", "--key", key]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = program(&world, words).stdout(full).run_into();
        assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
        ran.stderr_contains(&["error: cannot write the output"]);
    }
}

#[test]
fn yes_needs_names_or_all() {
    let world = with_git();
    let ran = program(&world, &["approve", "--yes"]).run().exits_with(2);
    ran.stderr_contains(&["--yes", "--all"]);
    assert!(!lock(&world).exists());
    let _ = program(&world, &["approve", "--all", "git", "--yes"]).run().exits_with(2);
    let _ = program(&world, &["approve", "--all", "--yes"]).run().exits_with(0);
    assert!(lock(&world).exists());
}

#[test]
fn name_in_several_directories_needs_its_source() {
    let world = with_git();
    let other = world.outer().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("git.wasm"), plugin("sum").build()).unwrap();
    let words = ["approve", "git", "--yes", "--plugins", other.to_str().unwrap()];
    let ran = program(&world, &words).run().exits_with(2);
    ran.stderr_contains(&["--source", other.to_str().unwrap()]);
    assert!(!lock(&world).exists());
    let ran = program(&world, &words).args(["--source"]).args([&other]).run().exits_with(0);
    assert_eq!(ran.stdout.matches("is approved.").count(), 1, "{ran:?}");
    assert!(fs::read_to_string(lock(&world)).unwrap().contains("other"));
}

#[test]
fn damaged_file_of_an_approved_plugin_has_changed_since() {
    let world = with_git();
    approve(&world);
    for damaged in [&b"no plugin at all"[..], b"\0asm\x0d\0\x01\0", b"\0asm\x01\0\0\0"] {
        world.install("git", damaged);
        let ran = program(&world, &["list"]).run().exits_with(0);
        ran.stderr_contains(&["git.wasm: it has changed since it was approved, and "]);
        let ran = program(&world, &["approve"]).run().exits_with(0);
        ran.stderr_contains(&["git.wasm: it has changed since it was approved, and "]);
        assert!(!ran.stdout.contains("Every plugin is approved."), "{ran:?}");
        let ran = program(&world, &["approve", "git", "--yes"]).run().exits_with(6);
        ran.stderr_contains(&["`git` cannot be approved: it has changed since"]);
    }
}
