//! Tests that every fuzzed border handles arbitrary bytes: the inputs found so far (`fuzz/corpus`)
//! are replayed. Inputs with known outcomes run as well, so that a border that ignores its input is
//! noticed.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use palisade::{
    ErrorClass, SideEffects,
    policy::{Mode, Policy},
};
use palisade_tests::fuzz::{self, BORDERS, Border};
use palisade_tests::guest::FUZZ_PLAN;
use palisade_tests::{Stage, is_tested};
use serde_json::json;

palisade_tests::foreach_fuzz!(is_tested);

fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Replays the corpus of one border.
#[track_caller]
fn replay(name: &str) {
    let border: Border = BORDERS.iter().find(|(border, _)| *border == name).unwrap().1;
    let files = corpus(name);
    assert!(files.len() >= 10, "only {} inputs in the corpus of `{name}`", files.len());
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let kept = catch_unwind(|| border(&bytes));
        assert!(kept.is_ok(), "{}: see the panic above", file.display());
    }
}

#[test]
fn component_corpus_is_refused_or_loads() {
    replay("component");
}

#[test]
fn output_corpus_gives_results() {
    replay("output");
}

#[test]
fn plan_corpus_stays_in_the_workspace() {
    replay("paths");
}

#[test]
fn reply_corpus_is_read_or_refused() {
    replay("reply");
}

#[test]
fn schema_corpus_agrees_with_the_validator() {
    replay("schema");
}

#[test]
fn settings_corpus_is_read_or_refused_and_loosens_nothing() {
    replay("settings");
}

#[test]
fn every_corpus_has_a_target_and_small_inputs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, BORDERS.map(|(name, _)| name));
    for file in BORDERS.iter().flat_map(|(name, _)| corpus(name)) {
        assert!(fs::metadata(&file).unwrap().len() <= 16 * 1024, "{}", file.display());
    }
}

#[test]
fn well_formed_output_is_a_success() {
    // The case `ok`: no blocks, success, and all optional fields absent.
    let words: [u32; 11] = [0, fuzz::ANSWER, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    let laid_out: Vec<u8> =
        [0].into_iter().chain(words.into_iter().flat_map(u32::to_le_bytes)).collect();
    let result = fuzz::answer(&laid_out);
    assert!(result.is_success(), "{result}");
    let result = fuzz::answer(&[0, 9, 9, 9]);
    assert_eq!(result.error().unwrap().class(), ErrorClass::ExecutionError, "{result}");
}

#[test]
fn protected_files_of_plans_exist() {
    let protected = fuzz::protected();
    assert!(protected.len() >= 8, "{protected:?}");
}

#[tokio::test]
async fn fuzz_plan() {
    let policy = Policy::default().with_class(SideEffects::Write, Mode::Auto);
    let stage = Stage::new(&[FUZZ_PLAN], |builder| builder.policy(policy));
    stage.world.file("file.txt", "inside");
    let step = |op, at, path, to| json!({"op": op, "at": at, "path": path, "to_at": 0, "to": to});
    let steps = [
        step("make-directory", 0, "made", ""),
        step("open-directory", 0, "made", ""),
        step("write", 1, "new.txt", ""),
        step("rename", 1, "new.txt", "moved.txt"),
        step("read", 0, "moved.txt", ""),
        step("read", 1, "../file.txt", ""),
        step("read", 0, "../secret.txt", ""),
    ];
    let result = stage.host.call("plan", json!({"steps": steps}), json!({})).await;
    let told: Vec<String> = serde_json::from_str(&result.output().unwrap()).unwrap();
    assert_eq!(told[..5], ["done", "opened", "7", "done", "written"]);
    assert!(told[5..].iter().all(|told| told != "inside" && !told.contains("canary")), "{told:?}");
    assert_eq!(stage.world.read("moved.txt").unwrap(), "written");
}
