//! The promises of every SDK, checked with the specimen of a language (`tests/sdks/`).

use std::path::Path;

use palisade_tests::World;
use palisade_tests::program::{Program, Ran};
use serde_json::{Value, json};

/// The texts for the log and for the model about the tool `fail` with the input `crash`.
pub(crate) struct Crash {
    /// Text in the log.
    pub(crate) logged: &'static str,
    /// The message for the model: one line.
    pub(crate) shown: &'static str,
}

/// Calls the tools of a specimen, and checks their results.
pub(crate) fn are_kept(plugin: &Path, crash: &Crash) {
    let world = World::new();
    world.install("specimen", &std::fs::read(plugin).unwrap());
    world.file("a.txt", "one three two\n");
    result_log_progress_and_stream_arrive(&world);
    errors_are_clean(&world, crash);
    class_is_enforced(&world);
    files_of_a_large_tree_are_read(plugin);
}

/// Checks that a tool returns different random numbers, although its memory begins as it was built.
pub(crate) fn random_numbers_differ(plugin: &Path) {
    let world = World::new();
    world.install("specimen", &std::fs::read(plugin).unwrap());
    let numbers = [(); 2].map(|()| call(&world, "random_number", &json!({})).exits_with(0).stdout);
    assert_ne!(numbers[0], numbers[1]);
}

fn call(world: &World, tool: &str, input: &Value) -> Ran {
    program(world, tool, input).run()
}

fn program<'w>(world: &'w World, tool: &str, input: &Value) -> Program<'w> {
    Program::new(world)
        .args(["call", tool, &input.to_string(), "--no-builtin", "--plugins"])
        .args([world.plugins()])
        .env("PALISADE_LOG", "info")
}

fn result_log_progress_and_stream_arrive(world: &World) {
    let events = world.outer().join("events");
    let ran = program(world, "words", &json!({"path": "a.txt"}))
        .args(["--json".into(), "--events".into(), events.clone().into_os_string()])
        .run()
        .exits_with(0);
    let result = ran.json();
    assert_eq!(result["content"][0]["json"], json!({"words": 3, "longest": "three"}));
    ran.stderr_contains(&["3 words"]);
    let events = std::fs::read_to_string(events).unwrap();
    let event = |name: &str| -> Value {
        let mut parsed = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        parsed.find(|event| event["event"] == name).unwrap_or_default()
    };
    assert_eq!(event("tool.progress")["message"], "half", "{events}");
    assert!(event("tool.output_delta").to_string().contains("counting"), "{events}");
}

fn errors_are_clean(world: &World, crash: &Crash) {
    let missing = call(world, "words", &json!({"path": "b.txt"})).exits_with(5);
    missing.stderr_contains(&["b.txt", "o such file or directory"]);
    let meant = call(world, "fail", &json!({"how": "error"})).exits_with(5);
    meant.stderr_contains(&["execution_error: a clean message"]);
    assert!(!meant.stderr.contains("looked for"), "it looked for nothing: {meant:?}");
    let input = program(world, "fail", &json!({"how": "input"})).args(["--json"]).run();
    let error = input.exits_with(5).json()["error"].clone();
    assert_eq!(error["detail"]["kind"], "invalid-input", "{error}");
    assert!(error["message"].as_str().unwrap().contains("is not this"), "{error}");
    let crashed = call(world, "fail", &json!({"how": "crash"})).exits_with(5);
    crashed.stderr_contains(&[crash.logged, crash.shown]);
    let shown = program(world, "fail", &json!({"how": "crash"})).args(["--json"]).run().json();
    let message = shown["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with(crash.shown) && !message.contains('\n'), "{message}");
}

/// A call has 256 handles: an SDK releases those of each operation.
fn files_of_a_large_tree_are_read(plugin: &Path) {
    let world = World::new();
    world.install("specimen", &std::fs::read(plugin).unwrap());
    for directory in 0..300 {
        world.file(&format!("{directory}/deeper/a.txt"), "one\n");
    }
    assert_eq!(call(&world, "survey", &json!({})).exits_with(0).stdout, "300 files");
}

fn class_is_enforced(world: &World) {
    let _ = call(world, "sneak", &json!({"path": "b.txt"})).exits_with(4);
    assert!(!world.root().join("b.txt").exists());
    let input = json!({"path": "b.txt", "text": "h\u{e9} \"\u{1f600}\"\n"});
    let saved = program(world, "save", &input).args(["--allow", "write", "--json"]).run();
    assert_eq!(saved.exits_with(0).json()["files_modified"], json!(["b.txt"]));
    let written = std::fs::read_to_string(world.root().join("b.txt")).unwrap();
    assert_eq!(written, input["text"]);
}
