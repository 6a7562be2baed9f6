//! The promise of containment: no call reads, changes or learns of anything outside of its workspace, nor of anything that its class does not allow.
//!
//! Every attempt is refused inside the guest, and checked from outside: each world has a canary beside its workspace, and the harness compares it
//! before and after every run, and searches every result for what it says. Beside each attempt stands its legitimate twin, which succeeds.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "containment/afterwards.rs"]
mod afterwards;
#[path = "containment/caches.rs"]
mod caches;
#[path = "containment/classes.rs"]
mod classes;
#[path = "containment/files.rs"]
mod containment_files;
#[path = "containment/raw.rs"]
mod containment_raw;
#[path = "containment/journal.rs"]
mod journal;
#[path = "containment/links.rs"]
mod links;
#[path = "containment/protected.rs"]
mod protected;
#[path = "containment/races.rs"]
mod races;
#[path = "containment/read_only.rs"]
mod read_only;
#[path = "containment/special.rs"]
mod special;
#[path = "containment/without_openat2.rs"]
mod without_openat2;

use palisade::SideEffects;
use palisade_tests::guest::{CONTAINMENT_FILES, CONTAINMENT_RAW};
use palisade_tests::{Case, Seen, World, is_tested};
use serde_json::{Value, json};

palisade_tests::foreach_containment!(is_tested);

/// Files and directories, and links of every kind: to what is inside, to what is outside, and to nothing.
fn furnished(world: &World) {
    world.file("file.txt", "inside").file("dir/inner.txt", "inner").folder("dir/deep").folder("empty");
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

/// One operation through the standard library.
fn files(tool: &str, op: &str, path: &str, to: &str) -> Seen {
    let case = Case::new(CONTAINMENT_FILES, tool).input(json!({"op": op, "path": path, "to": to}));
    let classes = [SideEffects::Write, SideEffects::Execute, SideEffects::Network];
    classes.into_iter().fold(case, Case::allow).arrange(furnished).check()
}

/// Operations straight through `wasi:filesystem`, each with the host's answer.
fn raw(tool: &str, attempts: &[Value]) -> (Seen, Vec<String>) {
    let case = Case::new(CONTAINMENT_RAW, tool).input(json!({"attempts": attempts}));
    let seen = case.allow(SideEffects::Write).arrange(furnished).check();
    let answers = serde_json::from_str(seen.output()).unwrap();
    (seen, answers)
}

/// The same operation on many paths.
fn each(op: &str, paths: &[&str], follow: bool) -> Vec<Value> {
    paths.iter().map(|path| json!({"op": op, "path": path, "to": "dir/new", "follow": follow})).collect()
}

/// Checks that the host refused every attempt.
#[track_caller]
fn all_refused(attempts: &[Value], answers: &[String]) {
    assert_eq!(attempts.len(), answers.len());
    for (attempt, answer) in attempts.iter().zip(answers) {
        assert!(answer.starts_with("refused: "), "{attempt}: {answer}");
    }
}
