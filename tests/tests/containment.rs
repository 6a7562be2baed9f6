//! Tests that no call reads, changes or learns of anything outside its workspace, or beyond the
//! rights of its class.
//!
//! Every attempt is refused inside the guest and checked from outside: each world has a canary
//! beside its workspace. The harness compares it before and after every run, and searches every
//! result for its contents. Each attempt has a legitimate twin that succeeds.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "containment/after_stop.rs"]
mod after_stop;
#[path = "containment/caches.rs"]
mod caches;
#[path = "containment/classes.rs"]
mod classes;
#[path = "containment/files.rs"]
mod containment_files;
#[path = "containment/raw.rs"]
mod containment_raw;
#[path = "containment/hard_links.rs"]
mod hard_links;
#[path = "containment/journal.rs"]
mod journal;
#[path = "containment/links.rs"]
mod links;
#[path = "containment/mounts.rs"]
mod mounts;
#[path = "containment/path_rules.rs"]
mod path_rules;
#[path = "containment/protected.rs"]
mod protected;
#[path = "containment/races.rs"]
mod races;
#[path = "containment/read_only.rs"]
mod read_only;
#[path = "containment/repositories.rs"]
mod repositories;
#[path = "containment/special.rs"]
mod special;
#[path = "containment/subdirectory.rs"]
mod subdirectory;
#[path = "containment/without_openat2.rs"]
mod without_openat2;

use palisade::SideEffects;
use palisade_tests::guest::{CONTAINMENT_FILES, CONTAINMENT_RAW};
use palisade_tests::{Case, Observed, World, is_tested};
use serde_json::{Value, json};

palisade_tests::foreach_containment!(is_tested);

/// Creates files, directories and symlinks of every kind: to targets inside, targets outside, and
/// missing targets.
fn furnished(world: &World) {
    world
        .file("file.txt", "inside")
        .file("dir/inner.txt", "inner")
        .folder("dir/deep")
        .folder("empty");
    for (path, to) in [
        ("to-file", "file.txt"),
        ("to-dir", "dir"),
        ("dir/to-sibling", "../file.txt"),
        ("chain", "to-file"),
        ("dangling-inside", "missing.txt"),
        ("out-file", "../secret.txt"),
        ("out-file-absolute", "@/secret.txt"),
        ("out-dir", "../outside"),
        ("out-dir-absolute", "@/outside"),
        ("out-chain", "out-file"),
        ("out-chain-through-dir", "dir/up/../secret.txt"),
        ("dir/up", ".."),
        ("dir/up-twice", "../.."),
        ("out-dangling", "../not-yet.txt"),
        ("loop-a", "loop-b"),
        ("loop-b", "loop-a"),
        ("self", "self"),
        ("etc", "/etc"),
        ("host-root", "/"),
        ("self-absolute", "@/workspace"),
        ("proc", "/proc/self/root"),
    ] {
        world.link(path, to);
    }
}

/// Runs one operation through the standard library.
fn files(tool: &str, op: &str, path: &str, to: &str) -> Observed {
    let case = Case::new(CONTAINMENT_FILES, tool).input(json!({"op": op, "path": path, "to": to}));
    let classes = [SideEffects::Write, SideEffects::Execute, SideEffects::Network];
    classes.into_iter().fold(case, Case::allow).arrange(furnished).check()
}

/// Runs operations directly through `wasi:filesystem`, and returns the host's answer to each.
fn raw(tool: &str, attempts: &[Value]) -> (Observed, Vec<String>) {
    let case = Case::new(CONTAINMENT_RAW, tool).input(json!({"attempts": attempts}));
    let seen = case.allow(SideEffects::Write).arrange(furnished).check();
    let answers = serde_json::from_str(seen.output()).unwrap();
    (seen, answers)
}

/// Returns one attempt of the same operation for each path.
fn each(op: &str, paths: &[&str], follow: bool) -> Vec<Value> {
    paths
        .iter()
        .map(|path| json!({"op": op, "path": path, "to": "dir/new", "follow": follow}))
        .collect()
}

/// Checks that the host refused every attempt.
#[track_caller]
fn all_refused(attempts: &[Value], answers: &[String]) {
    assert_eq!(attempts.len(), answers.len());
    for (attempt, answer) in attempts.iter().zip(answers) {
        assert!(answer.starts_with("refused: "), "{attempt}: {answer}");
    }
}
