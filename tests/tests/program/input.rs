//! The input of `call`: from the command line, a file, or standard input.

use crate::program;
use palisade_tests::World;
use std::fs;

const SUM: &str = r#"{"expression": "1 + 2"}"#;

#[test]
fn it_comes_from_the_command_line_a_file_or_standard_input() {
    let world = World::new();
    fs::write(world.outer().join("input.json"), SUM).expect("a file can be written");
    for ran in [
        program(&world, &["call", "calculate", SUM]).run(),
        program(&world, &["call", "calculate", "@input.json"]).run(),
        program(&world, &["call", "calculate", "-"]).stdin(SUM).run(),
    ] {
        assert_eq!(ran.left_with(0).stdout, "3");
    }
}

#[test]
fn without_one_it_is_an_empty_object() {
    let world = World::new();
    world.file("only.txt", "");
    assert_eq!(
        program(&world, &["call", "list_dir"]).run().left_with(0).stdout,
        "only.txt (0 bytes)\n"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_2_and_named() {
    let world = World::new();
    for (argument, named) in
        [("@missing.json", "`missing.json`"), ("@outside", "`outside`"), ("@", "``")]
    {
        let ran = program(&world, &["call", "calculate", argument]).run().left_with(2);
        ran.complains(&["error:", "cannot read the input", named]);
    }
}

#[test]
fn what_is_no_text_is_refused_wherever_it_comes_from() {
    let world = World::new();
    fs::write(world.outer().join("binary"), [b'{', 0xff, b'}']).expect("a file can be written");
    let file = program(&world, &["call", "calculate", "@binary"]).run();
    let stdin = program(&world, &["call", "calculate", "-"]).stdin([b'{', 0xff, b'}']).run();
    for ran in [file, stdin] {
        assert!(matches!(ran.code, 2 | 6), "{ran:?}");
        ran.complains(&["UTF-8"]);
    }
}

#[test]
fn an_empty_standard_input_is_no_json() {
    let world = World::new();
    program(&world, &["call", "calculate", "-"])
        .run()
        .left_with(6)
        .complains(&["validation_error:"]);
}

#[test]
fn an_input_that_is_too_large_is_refused_with_the_bound_wherever_its_characters_fall() {
    let world = World::new();
    for pad in ["", " "] {
        let input = format!(r#"{{{pad}"expression": "{}"}}"#, "ü".repeat(1 << 20));
        let ran = program(&world, &["call", "calculate", "-"]).stdin(input).run().left_with(6);
        ran.complains(&["validation_error:", "1048576 bytes"]);
    }
}

#[test]
fn an_input_that_is_nested_without_end_is_refused() {
    let world = World::new();
    let input = format!(r#"{{"expression": {}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    program(&world, &["call", "calculate", "-"])
        .stdin(input)
        .run()
        .left_with(6)
        .complains(&["validation_error:"]);
}
