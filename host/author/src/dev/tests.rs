//! Tests of the watch of a project. Pauses do not sleep: they make the next change.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use std::fs;
use tempfile::TempDir;

fn project() -> TempDir {
    let project = tempfile::tempdir().unwrap();
    for directory in ["src", "tests", "dist", "target", ".venv"] {
        fs::create_dir(project.path().join(directory)).unwrap();
    }
    write(&project, "src/lib.rs", "1");
    project
}

fn write(project: &TempDir, path: &str, text: &str) {
    fs::write(project.path().join(path), text).unwrap();
}

/// Waits for a change, and makes one of these files in each pause. Returns the change, and the
/// number of pauses.
fn wait(watch: &mut Watch, project: &TempDir, files: &[&str]) -> (Change, usize) {
    let mut pauses = 0;
    let change = watch.wait(|_| {
        if let Some(file) = files.get(pauses) {
            write(project, file, &"x".repeat(10 + pauses));
        }
        pauses += 1;
        assert!(pauses < 20, "no change is seen");
    });
    (change.unwrap(), pauses)
}

fn source(path: &str) -> Change {
    Change::Source(path.into())
}

#[test]
fn change_of_a_source_and_of_a_case_are_told_apart() {
    let project = project();
    let mut watch = Watch::begin(project.path()).unwrap();
    assert_eq!(wait(&mut watch, &project, &["src/lib.rs"]).0, source("src/lib.rs"));
    assert_eq!(wait(&mut watch, &project, &["src/new.rs"]).0, source("src/new.rs"));
    assert_eq!(wait(&mut watch, &project, &["tests/counts.json"]).0, Change::Cases);
}

#[test]
fn files_of_tests_are_no_change() {
    let project = project();
    let mut watch = Watch::begin(project.path()).unwrap();
    let (change, pauses) = wait(&mut watch, &project, &["tests/helper.rs", "src/lib.rs"]);
    assert_eq!(change, source("src/lib.rs"));
    assert!(pauses > 1, "{pauses}");
}

#[test]
fn files_that_builds_write_are_no_change() {
    let project = project();
    let mut watch = Watch::begin(project.path()).unwrap();
    let written = ["dist/a.wasm", "target/x", ".venv/y", "Cargo.lock", "package-lock.json"];
    let all = [&written[..], &["src/lib.rs"]].concat();
    let (change, pauses) = wait(&mut watch, &project, &all);
    assert_eq!(change, source("src/lib.rs"));
    assert!(pauses > written.len(), "{pauses}");
}

#[test]
fn several_changes_at_once_are_one() {
    let project = project();
    let mut watch = Watch::begin(project.path()).unwrap();
    let (_, pauses) = wait(&mut watch, &project, &["src/a.rs", "src/b.rs", "src/c.rs"]);
    assert_eq!(pauses, 4, "the last one finds nothing new");
}

#[test]
fn change_during_a_build_is_seen_after_it() {
    let project = project();
    let mut watch = Watch::begin(project.path()).unwrap();
    for build in ["first", "second"] {
        write(&project, "src/lib.rs", &format!("saved during the {build} build"));
        // One pause shows that nothing more follows.
        assert_eq!(wait(&mut watch, &project, &[]), (source("src/lib.rs"), 1));
    }
}

#[test]
fn removed_source_is_a_change() {
    let project = project();
    let mut watch = Watch::begin(project.path()).unwrap();
    let file = project.path().join("src/lib.rs");
    let change = watch.wait(|_| drop(fs::remove_file(&file))).unwrap();
    assert_eq!(change, source("src/lib.rs"));
}

#[test]
fn file_that_grows_all_the_time_delays_a_build_by_two_seconds() {
    let project = project();
    let mut watch = Watch::begin(project.path()).unwrap();
    let (change, pauses) = wait(&mut watch, &project, &["notes.log"; 19]);
    assert_eq!((change, pauses), (source("notes.log"), 1 + LOOKS));
}
