//! `check --record` and the replay of what it recorded.

use crate::program;
use palisade_tests::World;
use serde_json::{Value, json};
use std::fs;

/// Writes the shipped plugin of files beside its cases.
fn arrange(world: &World) {
    let plugin = palisade_plugins::all().iter().find(|it| it.name == "files").unwrap();
    fs::write(world.outer().join("files.wasm"), plugin.bytes()).unwrap();
    fs::create_dir(world.outer().join("before")).unwrap();
    fs::write(world.outer().join("before/a.txt"), "old").unwrap();
}

const RECORD: [&str; 10] = [
    "check",
    "files.wasm",
    "--record",
    "rewrite",
    "--tool",
    "write_file",
    "--files",
    "before",
    "--input",
    r#"{"path": "a.txt", "content": "new"}"#,
];

fn report(world: &World, exit: i32) -> Value {
    let words = ["check", "files.wasm", "--json", "--inputs", "0"];
    program(world, &words).run().exits_with(exit).json()
}

#[test]
fn recorded_case_holds_until_the_result_differs() {
    let world = World::new();
    arrange(&world);
    let ran = program(&world, &RECORD).run().exits_with(0);
    assert!(ran.stdout.starts_with("Recorded `tests/rewrite.json`"), "{ran:?}");
    assert_eq!(fs::read_to_string(world.outer().join("before/a.txt")).unwrap(), "old");
    let file = world.outer().join("tests/rewrite.json");
    let mut case: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(case["workspace"], json!({"a.txt": "old"}));
    assert_eq!(case["changes"], json!({"a.txt": "new"}));
    let replayed = report(&world, 0);
    assert_eq!(replayed["cases"], 1, "{replayed:#}");
    for (member, planted) in [
        ("changes", json!({"a.txt": "newer"})),
        ("result", json!({"success": false})),
        ("workspace", json!({"../a.txt": "old"})),
        ("tool", json!("no_such_tool")),
    ] {
        let kept = case[member].clone();
        case[member] = planted;
        fs::write(&file, case.to_string()).unwrap();
        let found = report(&world, 6);
        assert_eq!(found["findings"][0]["code"], "differs", "{member}: {found:#}");
        case[member] = kept;
    }
    assert!(!world.outer().join("a.txt").exists(), "a case stays inside of its workspace");
    fs::write(&file, "{").unwrap();
    assert_eq!(report(&world, 6)["findings"][0]["code"], "differs");
}

#[test]
fn tool_without_a_case_is_named_beside_one_that_has_one() {
    let world = World::new();
    arrange(&world);
    let _ = program(&world, &RECORD).run().exits_with(0);
    let report = report(&world, 0);
    let findings = report["findings"].as_array().unwrap();
    let without: Vec<&str> = findings
        .iter()
        .filter(|it| it["code"] == "no-case")
        .filter_map(|it| it["tool"].as_str())
        .collect();
    assert!(without.contains(&"read_file") && !without.contains(&"write_file"), "{report:#}");
}

#[test]
fn failed_call_is_a_case_as_well() {
    let world = World::new();
    arrange(&world);
    let words = [
        "check",
        "files.wasm",
        "--record",
        "none",
        "--tool",
        "read_file",
        "--json",
        "--input",
        r#"{"path": "x"}"#,
    ];
    let made = program(&world, &words).run().exits_with(0).json();
    assert_eq!(made["case"]["result"]["error"]["kind"], "not-found", "{made:#}");
    assert_eq!(report(&world, 0)["cases"], 1);
    let words = words.into_iter().filter(|word| *word != "--json").collect::<Vec<_>>();
    let again = program(&world, &words).run().exits_with(0);
    assert!(again.stdout.starts_with("Replaced `tests/none.json`"), "{again:?}");
    again.stderr_contains(&["the call failed, and the case expects that it fails in this way"]);
}

#[test]
fn link_at_the_place_of_a_case_is_replaced() {
    let world = World::new();
    arrange(&world);
    let outside = world.outer().join("outside.txt");
    fs::write(&outside, "mine").unwrap();
    fs::create_dir(world.outer().join("tests")).unwrap();
    std::os::unix::fs::symlink(&outside, world.outer().join("tests/rewrite.json")).unwrap();
    let _ = program(&world, &RECORD).run().exits_with(0);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
}

#[test]
fn project_without_cases_is_warned_and_a_file_is_not() {
    let world = World::new();
    arrange(&world);
    let count = |words: &[&str]| {
        let words = [words, &["--json", "--inputs", "0"]].concat();
        let report = program(&world, &words).run().exits_with(0).json();
        let findings = report["findings"].as_array().unwrap().clone();
        findings.iter().filter(|it| it["code"] == "no-case").count()
    };
    assert_eq!(count(&["check", "files.wasm"]), 0);
    let output = world.outer().join("project/dist");
    fs::create_dir_all(&output).unwrap();
    fs::copy(world.outer().join("files.wasm"), output.join("files.wasm")).unwrap();
    assert!(count(&["check", "project"]) > 1);
    fs::copy(world.outer().join("files.wasm"), output.join("former.wasm")).unwrap();
    let several = program(&world, &["check", "project"]).run().exits_with(2);
    several.stderr_contains(&["several plugins", "files.wasm`", "former.wasm`"]);
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let world = World::new();
    arrange(&world);
    let pipe = world.outer().join("pipe.wasm");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in ["pipe.wasm", "/dev/zero"] {
        let ran = program(&world, &["check", file]).run().exits_with(2);
        ran.stderr_contains(&["it is not a regular file"]);
    }
    fs::create_dir(world.outer().join("tests")).unwrap();
    fs::rename(&pipe, world.outer().join("tests/pipe.json")).unwrap();
    assert_eq!(report(&world, 6)["findings"][0]["code"], "differs");
}

#[test]
fn recording_that_is_not_clear_is_refused() {
    let world = World::new();
    arrange(&world);
    for name in ["linked", "large"] {
        fs::create_dir(world.outer().join(name)).unwrap();
    }
    std::os::unix::fs::symlink("x", world.outer().join("linked/link")).unwrap();
    let sparse = fs::File::create(world.outer().join("large/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    for (words, said) in [
        (&["--record", "../x", "--tool", "read_file"][..], "cannot be the name of a case"),
        (&["--record", "x"], "name the tool with --tool: "),
        (
            &["--record", "x", "--tool", "nothing"],
            "there is no tool `nothing`; --tool takes one of: ",
        ),
        (&["--record", "x", "--tool", "read_file", "--files", "none"], "`none` is no directory"),
        (&["--record", "x", "--tool", "read_file", "--files", "linked"], "`link` is neither"),
        (&["--record", "x", "--tool", "read_file", "--files", "large"], "more than 4194304 bytes"),
        (&["--cases", "none"], "--cases: `none` is no directory"),
    ] {
        let all = [&["check", "files.wasm"], words].concat();
        program(&world, &all).run().exits_with(2).stderr_contains(&[said]);
    }
}
