//! `search_files`: finds lines in a tree by content, without ignored files.

use crate::call;
use palisade_tests::World;
use serde_json::{Value, json};

fn tree(world: &World) {
    world
        .file("a.txt", "one\nneedle two\nthree\nfour\nfive\nNeedle six\n")
        .file("sub/b.txt", "needle\r\n");
    world
        .file("binary", b"needle\0needle")
        .file("ignored/c.txt", "needle")
        .file(".gitignore", "ignored/\n");
    world.file(".hidden", "a needle").file(".git/config", "needle").link("link", "@/secret.txt");
}

fn search(input: Value) -> String {
    let seen = call("search_files", input).arrange(tree).check();
    seen.changed_nothing().modified(&[]);
    let output = seen.output();
    let count = "[lines count from 0, as in read_file]\n";
    assert_eq!(output.contains(count), !output.starts_with("[no line matches"), "{output}");
    output.replace(count, "")
}

#[test]
fn matching_lines_have_path_and_number() {
    assert_eq!(
        search(json!({"pattern": "needle"})),
        ".hidden:0:a needle\na.txt:1:needle two\nsub/b.txt:0:needle\n"
    );
    assert_eq!(search(json!({"pattern": "(?i)^needle s"})), "a.txt:5:Needle six\n");
    assert_eq!(search(json!({"pattern": "two$", "path": "a.txt"})), "a.txt:1:needle two\n");
    assert_eq!(search(json!({"pattern": "needle", "path": "sub"})), "sub/b.txt:0:needle\n");
    assert_eq!(search(json!({"pattern": "needle", "path": "ignored"})), "ignored/c.txt:0:needle\n");
}

#[test]
fn line_numbers_are_those_of_read_file() {
    let seen = call("read_file", json!({"path": "a.txt", "start_line": 5, "end_line": 5}))
        .arrange(tree)
        .check();
    assert_eq!(seen.output(), "Needle six\n");
}

#[test]
fn context_surrounds_matches_in_separate_groups() {
    let wanted =
        "a.txt-0-one\na.txt:1:needle two\na.txt-2-three\n--\na.txt-4-five\na.txt:5:Needle six\n";
    assert_eq!(search(json!({"pattern": "[nN]eedle", "path": "a.txt", "context": 1})), wanted);
}

#[test]
fn empty_result_states_the_files_searched() {
    let said = search(json!({"pattern": "nothing"}));
    assert!(
        said.starts_with("[no line matches `nothing` below `.`; ")
            && said.contains("1 of them binary"),
        "{said}"
    );
}

#[test]
fn invalid_or_costly_pattern_is_refused_at_once() {
    for pattern in [
        "",
        "(",
        "a(?=b)",
        r"(a)\1",
        &"a".repeat(5_000),
        &"(".repeat(100),
        "(((a{100}){100}){100}){100}",
    ] {
        let seen = call("search_files", json!({"pattern": pattern})).arrange(tree).check();
        let error = seen.error("execution_error");
        assert_eq!(
            (&error["detail"]["kind"], &error["detail"]["field"]),
            (&json!("invalid-input"), &json!("pattern")),
            "{error:#}"
        );
    }
    for input in
        [json!({"pattern": "a", "context": 21}), json!({"pattern": "a", "context": -1}), json!({})]
    {
        let _ = call("search_files", input).check().error("validation_error");
    }
}

#[test]
fn missing_or_outside_path_is_refused() {
    assert_eq!(
        call("search_files", json!({"pattern": "a", "path": "none"})).check().kind(),
        "not-found"
    );
    for path in ["..", "link"] {
        let seen =
            call("search_files", json!({"pattern": "canary", "path": path})).arrange(tree).check();
        let _ = seen.error("permission_denied");
    }
    assert!(
        search(json!({"pattern": "canary"})).starts_with("[no line matches"),
        "links are not followed"
    );
}

#[test]
fn at_most_two_hundred_matches_are_shown_with_advice() {
    let seen = call("search_files", json!({"pattern": "x"}))
        .arrange(|world| {
            world.file("f", "x\n".repeat(500));
        })
        .check();
    let lines: Vec<&str> = seen.output().lines().collect();
    assert_eq!((lines.len(), lines[199]), (202, "f:199:x"));
    assert_eq!(
        lines[201],
        "[200 matches in 1 files shown, and there are more; narrow the pattern, or give a path]"
    );
}

#[test]
fn long_line_is_cut_around_its_match() {
    let line = format!("{}MATCH{}", "a".repeat(10_000), "b".repeat(10_000));
    let seen = call("search_files", json!({"pattern": "MATCH"}))
        .arrange(move |world| {
            world.file("f", &line);
        })
        .check();
    let first = seen.output().lines().next().expect("a line");
    assert!(
        first.contains("aMATCHb") && first.ends_with("… [line of 20005 bytes]"),
        "{}",
        seen.output()
    );
    assert!(seen.output().len() < 600, "{}", seen.output());
}
