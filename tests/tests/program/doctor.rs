//! `palisade doctor`: every problem by name, advice for it, and the exit code that a call would
//! have.

use crate::terminal::Terminal;
use crate::{program, user_file};
use palisade_tests::program::Ran;
use palisade_tests::{World, guest};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn doctor_reports_each_finding_with_advice() {
    let world = World::new();
    let checks = program(&world, &["doctor", "--json"]).run().exits_with(0).json();
    for check in checks["checks"].as_array().expect("a list") {
        assert!(check["name"].is_string() && check["found"].is_string(), "{check:#}");
        assert!(["ok", "note", "bad"].iter().any(|state| check["state"] == *state), "{check:#}");
        assert_eq!(check["advice"].is_null(), check["state"] == "ok", "{check:#}");
    }
    let text = program(&world, &["doctor"]).run().exits_with(0).stdout;
    for name in ["engine", "cache", "workspace", "landlock", "toolchain", "target"] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

/// Returns the failed checks with this name.
#[track_caller]
fn bad(ran: &Ran, name: &str) -> Vec<String> {
    let told = ran.json();
    let checks = told["checks"].as_array().expect("a list");
    let of_name = checks.iter().filter(|check| check["name"] == name && check["state"] == "bad");
    let shown = |check: &Value| {
        format!("{} {}", check["found"].as_str().unwrap(), check["advice"].as_str().unwrap())
    };
    of_name.map(shown).collect()
}

#[track_caller]
fn says(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "{part:?} is not in {told:?}");
    }
}

#[test]
fn doctor_names_broken_files_and_exits_like_other_verbs() {
    let world = World::new();
    user_file(&world, "[confirm\n");
    world.file("palisade.toml", "[confirm]\nwirte = \"deny\"");
    let run =
        |words: &[&str]| program(&world, words).env("PALISADE_MEMORY", "much").run().exits_with(2);
    let found = bad(&run(&["doctor", "--json"]), "configuration");
    assert_eq!(found.len(), 3, "{found:#?}");
    says(&found[0], &[".config/palisade/palisade.toml", "docs/settings.md"]);
    says(&found[1], &["workspace/palisade.toml", "did you mean `write`?"]);
    says(&found[2], &["PALISADE_MEMORY"]);
    says(
        &run(&["doctor"]).stdout,
        &["bad   configuration", ".config/palisade/palisade.toml", "wirte"],
    );
}

#[test]
fn doctor_prints_lines_as_lines_and_paths_whole() {
    let world = World::new();
    let file = user_file(&world, "[confirm\n");
    let missing = world.outer().join("a-directory-with-a-long-name/and-another-one-below-it");
    let words = ["doctor", "--plugins", missing.to_str().unwrap()];
    let terminal = Terminal::with_columns(60);
    let mut command = terminal.command(&world, &words);
    command.stdout(terminal.stream()).stderr(terminal.stream());
    let (ran, narrow) = terminal.run(command);
    let piped = program(&world, &words).run();
    assert_eq!((ran.code, piped.code), (2, 2), "{narrow}");
    for shown in [&narrow, &piped.stdout] {
        assert!(!shown.contains("\\n"), "a line feed is one: {shown}");
        says(shown, &["1 | [confirm", file.to_str().unwrap(), missing.to_str().unwrap()]);
        let begins = |line: &str| ["ok ", "note ", "bad "].iter().any(|it| line.starts_with(it));
        let own = |line: &&str| !line.contains("compiling plugins");
        for line in shown.lines().filter(own) {
            assert!(begins(line) || line.starts_with("          "), "{line:?} in:\n{shown}");
        }
    }
}

/// Returns the advice on the target where these programs are found, and no others.
fn target_advice(programs: &[(&str, &str)]) -> String {
    let world = World::new();
    let folder = world.outer().join("programs");
    fs::create_dir(&folder).unwrap();
    for (name, script) in programs {
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let told = program(&world, &["doctor", "--json"]).env("PATH", folder.as_os_str()).run().json();
    let checks = told["checks"].as_array().expect("a list");
    let target = checks.iter().find(|check| check["name"] == "target").expect("the check");
    target["advice"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn advice_on_the_target_fits_the_toolchain() {
    let rustc = ("rustc", "case $1 in --version) echo rustc 1.95.0;; *) echo /nowhere;; esac");
    let with_rustup = target_advice(&[rustc, ("rustup", "echo rustup 1.28")]);
    says(&with_rustup, &["`rustup target add wasm32-wasip2`", "CONTRIBUTING.md"]);
    let without = target_advice(&[rustc]);
    says(&without, &["a toolchain that has this target", "CONTRIBUTING.md"]);
    assert!(!without.contains("rustup target add"), "{without}");
    let there = ("rustc", "case $1 in --version) echo rustc 1.95.0;; *) echo /;; esac");
    assert_eq!(target_advice(&[there]), "", "a target that is there needs none");
}

#[test]
fn doctor_reports_a_loosening_project_and_a_missing_file() {
    let world = World::new();
    world.file("palisade.toml", "[confirm]\nwrite = \"auto\"");
    let found = bad(&program(&world, &["doctor", "--json"]).run().exits_with(2), "configuration");
    says(
        &found.concat(),
        &["may only tighten", "`confirm.write`", ".config/palisade/palisade.toml"],
    );
    let world = World::new();
    let ran =
        program(&world, &["doctor", "--json", "--config", "missing.toml"]).run().exits_with(2);
    says(&bad(&ran, "configuration").concat(), &["`missing.toml` does not exist", "--config"]);
}

#[test]
fn doctor_names_rejected_plugins_and_missing_directories() {
    let world = World::new();
    fs::copy(guest::LOADER_GOOD.file(), world.plugins().join("good.wasm"))
        .expect("a file can be copied");
    let doctor = || program(&world, &["doctor", "--json", "--plugins"]).args([world.plugins()]);
    assert_eq!(bad(&doctor().run().exits_with(0), "plugins"), Vec::<String>::new());
    for name in ["one.wasm", "two.wasm"] {
        fs::write(world.plugins().join(name), "nothing").expect("a file can be written");
    }
    let found = bad(&doctor().run().exits_with(6), "plugins");
    assert_eq!(found.len(), 2, "{found:#?}");
    says(&found[0], &["rejected ", "one.wasm: ", "remove the reason"]);
    says(&found[1], &["two.wasm: "]);
    let found = bad(
        &doctor().args(["--plugins", "/nowhere", "--plugins", "/nor/here"]).run().exits_with(2),
        "plugins",
    );
    assert_eq!(found.len(), 4, "{found:#?}");
    says(&found[0], &["`/nowhere`", "--plugins"]);
    says(&found[1], &["`/nor/here`"]);
}

#[test]
fn doctor_continues_with_a_broken_configuration() {
    let world = World::new();
    fs::write(world.plugins().join("bad.wasm"), "nothing").expect("a file can be written");
    let words = ["doctor", "--json", "--config", "missing.toml", "--plugins"];
    let ran = program(&world, &words).args([world.plugins()]).run().exits_with(2);
    says(&bad(&ran, "plugins").concat(), &["bad.wasm: "]);
}

#[test]
fn doctor_exits_2_for_an_unusable_workspace_or_cache() {
    let world = World::new();
    fs::remove_dir(world.root()).expect("it can be removed");
    let ran = program(&world, &["doctor", "--json"]).run().exits_with(2);
    says(&bad(&ran, "workspace").concat(), &["--workspace"]);
    let world = World::new();
    let cache = world.home().join("file");
    fs::write(&cache, "no directory").expect("a file can be written");
    let ran = program(&world, &["doctor", "--json"])
        .env("PALISADE_CACHE", cache.as_os_str())
        .run()
        .exits_with(2);
    says(&bad(&ran, "cache").concat(), &["PALISADE_CACHE"]);
}
