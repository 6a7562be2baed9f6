//! Checks the release workflow: it is YAML, builds for every system, and calls commands that exist.

#[path = "../../../host/cli/src/cli/mcp/snippet/tests/yaml.rs"]
mod yaml;

use super::checksums;
use super::platform::PLATFORMS;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that are on each of GitHub's machines.
const EVERYWHERE: [&str; 3] = ["gh", "rustup", "test"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn jobs() -> Value {
    let path = root().join(".github/workflows/release.yml");
    yaml::read(&fs::read_to_string(path).expect("the workflow"))["jobs"].take()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn matrix(jobs: &Value) -> &[Value] {
    list(&jobs["build"]["strategy"]["matrix"]["include"])
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the command of every step, for every system.
fn commands(jobs: &Value) -> Vec<String> {
    let jobs = jobs.as_object().expect("the jobs").values();
    let runs = jobs.flat_map(|job| list(&job["steps"])).map(|step| text(step, "run").to_owned());
    let runs: Vec<String> = runs.filter(|run| !run.is_empty()).collect();
    let here = self::jobs();
    let all = matrix(&here).iter().flat_map(|system| {
        runs.iter().map(|run| run.replace("${{ matrix.options }}", text(system, "options")))
    });
    all.collect()
}

/// Returns the reason why a command does not exist.
fn missing(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "xtask", task, options @ ..] => {
            let usage = crate::USAGE.lines();
            let usage = usage.filter_map(|line| line.strip_prefix("cargo xtask "));
            let Some(usage) = usage.clone().find(|line| line.split(' ').next() == Some(task))
            else {
                return Some(format!("there is no task `{task}`"));
            };
            let option = options.iter().find(|option| !usage.contains(&format!("[{option}]")));
            option.map(|option| format!("`{task}` has no option `{option}`"))
        }
        [program, ..] if program.starts_with(".ci/") => {
            (!root().join(program).is_file()).then(|| format!("there is no `{program}`"))
        }
        [program, ..] if EVERYWHERE.contains(program) => None,
        _ => Some(format!("`{command}` is no known command")),
    }
}

#[test]
fn every_command_of_the_release_exists() {
    let commands = commands(&jobs());
    assert!(commands.iter().any(|command| command.starts_with("cargo xtask dist")), "{commands:?}");
    let missing: Vec<String> = commands.iter().filter_map(|command| missing(command)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for wrong in ["cargo xtask dust", "cargo xtask dist --all", ".ci/gone", "make"] {
        assert!(self::missing(wrong).is_some(), "{wrong}");
    }
}

#[test]
fn release_is_built_on_every_system() {
    let jobs = jobs();
    let built: BTreeSet<&str> = matrix(&jobs).iter().map(|it| text(it, "system")).collect();
    let known = PLATFORMS.map(|it| format!("{}-{}", it.npm_os, it.npm_cpu));
    assert_eq!(built, known.iter().map(String::as_str).collect());
    let whole = |it: &&Value| !text(it, "options").contains("--program");
    assert_eq!(matrix(&jobs).iter().filter(whole).count(), 1, "one system makes the rest");
    // A file that is missing would be noticed by its users.
    assert!(matrix(&jobs).iter().all(|it| text(it, "options").contains("--strict")));
}

#[test]
fn actions_are_those_of_github_at_a_major_version() {
    let jobs = jobs();
    let steps = jobs.as_object().expect("the jobs").values().flat_map(|job| list(&job["steps"]));
    let actions: Vec<&str> =
        steps.map(|step| text(step, "uses")).filter(|it| !it.is_empty()).collect();
    assert!(!actions.is_empty());
    for action in actions {
        let (name, version) = action.split_once("@v").expect("a version");
        assert!(name.starts_with("actions/") && version.parse::<u32>().is_ok(), "{action}");
    }
}

fn collect(root: &Path, from: &[&str]) -> bool {
    let mut collect = Command::new(self::root().join(".ci/collect"));
    collect.args(from).arg("release").current_dir(root);
    collect.output().expect("bash").status.success()
}

/// Makes the files of two systems, which have one in common.
fn made(common: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for (system, common) in [("a", "same"), ("b", common)] {
        let directory = root.path().join(system);
        fs::create_dir(&directory).expect("a directory");
        fs::write(directory.join(format!("palisade-{system}")), system).expect("a file");
        fs::write(directory.join("palisade-common"), common).expect("a file");
        checksums::write(&directory).expect("the checksums");
    }
    root
}

#[test]
#[cfg(target_os = "linux")]
fn files_of_all_systems_are_collected_with_their_checksums() {
    let root = made("same");
    assert!(collect(root.path(), &["a", "b"]));
    let release = root.path().join("release");
    let list = fs::read_to_string(release.join(checksums::FILE)).expect("the checksums");
    let names: Vec<&str> = list.lines().filter_map(|line| line.split("  ").nth(1)).collect();
    assert_eq!(names, ["palisade-a", "palisade-b", "palisade-common"]);
    checksums::write(&release).expect("the checksums");
    assert_eq!(list, fs::read_to_string(release.join(checksums::FILE)).expect("the checksums"));
}

#[test]
#[cfg(target_os = "linux")]
fn damaged_or_different_files_are_not_collected() {
    let root = made("other");
    assert!(!collect(root.path(), &["a", "b"]), "two systems made one file differently");
    let root = made("same");
    fs::write(root.path().join("b/palisade-b"), "damaged").expect("a file");
    assert!(!collect(root.path(), &["a", "b"]), "a file has not its checksum");
}
