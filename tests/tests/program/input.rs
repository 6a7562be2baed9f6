//! The input of `call`: from the command line, a file, or standard input.

use crate::program;
use palisade_tests::World;
use std::fs;

const SUM: &str = r#"{"expression": "1 + 2"}"#;

#[test]
fn input_comes_from_argument_file_or_stdin() {
    let world = World::new();
    fs::write(world.outer().join("input.json"), SUM).expect("a file can be written");
    for ran in [
        program(&world, &["call", "calculate", SUM]).run(),
        program(&world, &["call", "calculate", "@input.json"]).run(),
        program(&world, &["call", "calculate", "-"]).stdin(SUM).run(),
    ] {
        assert_eq!(ran.exits_with(0).stdout, "3");
    }
}

#[test]
fn missing_input_is_an_empty_object() {
    let world = World::new();
    world.file("only.txt", "");
    assert_eq!(
        program(&world, &["call", "list_dir"]).run().exits_with(0).stdout,
        "only.txt (0 bytes)\n"
    );
}

#[test]
fn unreadable_input_file_is_2() {
    let world = World::new();
    for (argument, named) in
        [("@missing.json", "`missing.json`"), ("@outside", "`outside`"), ("@", "``")]
    {
        let ran = program(&world, &["call", "calculate", argument]).run().exits_with(2);
        ran.stderr_contains(&["error:", "cannot read the input", named]);
    }
}

#[test]
fn invalid_utf8_is_refused_from_every_source() {
    let world = World::new();
    fs::write(world.outer().join("binary"), [b'{', 0xff, b'}']).expect("a file can be written");
    let file = program(&world, &["call", "calculate", "@binary"]).run();
    let stdin = program(&world, &["call", "calculate", "-"]).stdin([b'{', 0xff, b'}']).run();
    for ran in [file, stdin] {
        assert!(matches!(ran.code, 2 | 6), "{ran:?}");
        ran.stderr_contains(&["UTF-8"]);
    }
}

#[test]
fn empty_stdin_is_invalid_json() {
    let world = World::new();
    program(&world, &["call", "calculate", "-"])
        .run()
        .exits_with(6)
        .stderr_contains(&["validation_error:"]);
}

#[test]
fn oversized_input_is_refused_with_the_bound() {
    let world = World::new();
    for pad in ["", " "] {
        let input = format!(r#"{{{pad}"expression": "{}"}}"#, "ü".repeat(1 << 20));
        let ran = program(&world, &["call", "calculate", "-"]).stdin(input).run().exits_with(6);
        ran.stderr_contains(&["validation_error:", "1048576 bytes"]);
    }
}

#[test]
fn endless_nesting_is_refused() {
    let world = World::new();
    let input = format!(r#"{{"expression": {}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    program(&world, &["call", "calculate", "-"])
        .stdin(input)
        .run()
        .exits_with(6)
        .stderr_contains(&["validation_error:"]);
}
