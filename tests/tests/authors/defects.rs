//! `check`: each planted defect is named, and the shipped plugins have none.

use crate::program;
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World};
use serde_json::Value;
use std::fs;

/// A tool without a defect.
fn sound() -> Told {
    Told { description: "Answers each question with `done`.".to_owned(), ..Told::new("probe") }
}

/// The start of the memory that the texts of these plugins are in.
const TEXT: u32 = 100_000;

/// Returns the answer that the call failed, with the case of the error and a text.
fn failed(case: u32, length: u32) -> Wat {
    let words = [(256, 1), (260, case), (264, TEXT), (268, length), (272, TEXT), (276, length)];
    Wat::new(sound())
        .answering("", &words)
        .extra(&format!("(data (i32.const {TEXT}) \"{}\")", r"a\0a".repeat(32)))
}

/// Returns the report of a plugin.
fn checked(plugin: &[u8], words: &[&str]) -> (i32, Value) {
    let world = World::new();
    let file = world.outer().join("probe.wasm");
    fs::write(&file, plugin).unwrap();
    let all = [&["check", "probe.wasm", "--json", "--timeout", "1s"], words].concat();
    let ran = program(&world, &all).run();
    (ran.code, ran.json())
}

fn codes(report: &Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().filter_map(|it| it["code"].as_str()).collect()
}

#[track_caller]
fn is_named(code: &str, exit: i32, plugin: &[u8]) {
    let (exited, report) = checked(plugin, &[]);
    assert!(codes(&report).contains(&code), "{code}: {report:#}");
    assert_eq!((exited, &report["passed"]), (exit, &Value::Bool(exit == 0)), "{report:#}");
}

#[test]
fn sound_plugin_passes_without_a_finding() {
    let (exit, report) = checked(&Wat::new(sound()).build(), &[]);
    assert_eq!((exit, codes(&report)), (0, Vec::new()), "{report:#}");
    assert_eq!(report["world"], "palisade:tool/tool@0.1.0");
    assert_eq!(report["inputs"], 32);
}

#[test]
fn shipped_plugins_have_no_fault() {
    let world = World::new();
    for plugin in palisade_plugins::all() {
        fs::write(world.outer().join(plugin.file), plugin.bytes()).unwrap();
        let ran = program(&world, &["check", plugin.file]).run();
        assert_eq!(ran.code, 0, "{}: {}", plugin.file, ran.stdout);
        let last = ran.stdout.lines().last().unwrap();
        assert!(last.starts_with("PASSED") && last.contains("0 faults"), "{last}");
    }
}

#[test]
fn plugin_that_the_host_refuses_is_named() {
    let blank = Told { description: " ".to_owned(), ..sound() };
    is_named("refused", 6, &Wat::new(blank).build());
    let remote = r#"{"type": "object", "properties": {"x": {"$ref": "https://example.com/x"}}}"#;
    is_named("refused", 6, &Wat::new(sound().with_input(remote)).build());
    let keys = r#"(import "wasi:keyvalue/store@0.2.0" (instance))"#;
    is_named("refused", 6, &Wat::new(sound()).importing(keys).build());
}

#[test]
fn file_that_is_no_plugin_is_named() {
    is_named("no-component", 6, b"nothing");
    is_named("no-component", 6, b"\0asm\x01\0\0\0");
    is_named("no-tools", 6, &Wat::new(sound()).exporting("other:world/tool@1.0.0").build());
}

#[test]
fn hang_is_named() {
    let hangs = Wat::new(sound()).execute("(loop $again (br $again)) unreachable");
    is_named("hang", 6, &hangs.build());
}

#[test]
fn crash_is_named() {
    is_named("crash", 6, &Wat::new(sound()).execute("unreachable").build());
}

#[test]
fn exhausted_memory_is_named() {
    let grows = "(loop $again (br_if $again (i32.ne (memory.grow (i32.const 64)) (i32.const -1)))) unreachable";
    is_named("exhausted-memory", 6, &Wat::new(sound()).execute(grows).build());
}

#[test]
fn bad_output_is_named() {
    let grown = "(drop (memory.grow (i32.const 120)))";
    let sized = |length| Wat::new(sound()).answering_block(grown, 0, TEXT, length).build();
    is_named("too-large", 6, &sized(5_000_000));
    is_named("large-output", 0, &sized(300_000));
    is_named("contract", 6, &Wat::new(sound()).answering_block("", 1, TEXT, 8).build());
    let empty = [(260, 0), (264, 0), (268, 1)];
    is_named("no-output", 0, &Wat::new(sound()).answering("", &empty).build());
}

#[test]
fn bad_error_is_named() {
    is_named("blank-error", 6, &failed(3, 0).build());
    is_named("long-error", 0, &failed(3, 64).build());
    is_named("never-succeeds", 0, &failed(3, 64).build());
    is_named("schema-mismatch", 6, &failed(0, 64).build());
}

#[test]
fn second_answer_is_named() {
    // The length of the answer depends on the clock.
    let length = "(i32.store (i32.const 328) (i32.and (i32.wrap_i64 (i64.shr_u (call $now) (i64.const 8))) (i32.const 1023)))";
    let words = [(260, 320), (264, 1), (268, 1), (320, 0), (324, TEXT)];
    let plugin = Wat::new(sound()).with_clock().answering(length, &words);
    is_named("second-answer", 0, &plugin.build());
}

#[test]
fn weak_definition_is_named() {
    is_named("terse-description", 0, &Wat::new(Told::new("probe")).build());
    let silent = r#"{"type": "object", "properties": {"x": {"type": "string"}}}"#;
    is_named("undescribed-argument", 0, &Wat::new(sound().with_input(silent)).build());
    let long = format!(r#"{{"type": "object", "description": "{}"}}"#, "x".repeat(20_000));
    is_named("long-definition", 0, &Wat::new(sound().with_input(long)).build());
    let narrow = r#"{"type": "object", "not": {"required": ["y"]}}"#;
    is_named("weakened-schema", 0, &Wat::new(sound().with_input(narrow)).build());
    let pattern = r#"{"type": "object", "required": ["x"], "properties": {"x": {"type": "string", "pattern": "^[0-9]{9}-x$", "description": "A number."}}}"#;
    is_named("no-input", 0, &Wat::new(sound().with_input(pattern)).build());
}

#[test]
fn class_that_the_imports_contradict_is_named() {
    let high = Told { class: 1, ..sound() };
    is_named("class-too-high", 0, &Wat::new(high).build());
    let files = r#"(import "wasi:filesystem/preopens@0.2.0" (instance))"#;
    let high = Told { class: 1, ..sound() };
    let (_, report) = checked(&Wat::new(high).importing(files).build(), &[]);
    assert_eq!(codes(&report), Vec::<&str>::new(), "{report:#}");
}

#[test]
fn same_seed_gives_the_same_report() {
    let schema = r#"{"type": "object", "properties": {"x": {"type": "integer", "description": "A number."}}}"#;
    let plugin = Wat::new(sound().with_input(schema)).build();
    let report = |seed| {
        let (_, mut report) = checked(&plugin, &["--seed", seed, "--inputs", "8"]);
        report["seconds"] = Value::Null;
        report
    };
    assert_eq!(report("7"), report("7"));
}

#[test]
fn report_on_a_full_disk_is_1() {
    let world = World::new();
    fs::write(world.outer().join("probe.wasm"), Wat::new(sound()).build()).unwrap();
    for words in [&["check", "probe.wasm"][..], &["check", "probe.wasm", "--json"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = program(&world, words).stdout(full).run_into();
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.stderr_contains(&["No space left on device"]);
    }
}

#[test]
fn missing_file_is_3_and_missing_plugin_of_a_project_2() {
    let world = World::new();
    let _ = program(&world, &["check", "none.wasm"]).run().exits_with(3);
    let ran = program(&world, &["check", "workspace"]).run().exits_with(2);
    ran.stderr_contains(&["`palisade build` makes it"]);
}
