//! `find_files`: lists the files of a tree by name, without ignored ones.

use crate::call;
use palisade_tests::World;
use serde_json::{Value, json};

fn tree(world: &World) {
    for path in [
        "src/main.rs",
        "src/deep/er/lib.rs",
        "README.md",
        ".hidden.rs",
        "target/debug/made.rs",
        "sub/ignored.rs",
        ".git/x.rs",
    ] {
        world.file(path, "");
    }
    world
        .file(".gitignore", "/target\n")
        .file("sub/.ignore", "ignored.*\n")
        .link("link.rs", "@/secret.txt");
}

fn find(input: Value) -> String {
    let seen = call("find_files", input).arrange(tree).check();
    seen.changed_nothing().modified(&[]);
    seen.output().to_owned()
}

#[test]
fn name_is_found_at_any_depth_outside_ignored_directories() {
    assert_eq!(
        find(json!({"pattern": "*.rs"})),
        ".hidden.rs\nlink.rs\nsrc/deep/er/lib.rs\nsrc/main.rs\n"
    );
}

#[test]
fn pattern_with_slash_matches_the_whole_path() {
    assert_eq!(find(json!({"pattern": "src/*.rs"})), "src/main.rs\n");
    assert_eq!(find(json!({"pattern": "src/**/*.rs"})), "src/deep/er/lib.rs\nsrc/main.rs\n");
    assert_eq!(find(json!({"pattern": "**/er/*", "path": "src"})), "src/deep/er/lib.rs\n");
    assert_eq!(find(json!({"pattern": "*.{md,toml}"})), "README.md\n");
}

#[test]
fn ignored_directory_is_searched_on_request() {
    assert_eq!(find(json!({"pattern": "*.rs", "path": "target"})), "target/debug/made.rs\n");
}

#[test]
fn empty_result_states_the_search() {
    let said = find(json!({"pattern": "*.py"}));
    assert!(
        said.starts_with("[no file matches `*.py` below `.`; ")
            && said.contains("files were looked at"),
        "{said}"
    );
}

#[test]
fn invalid_pattern_or_path_is_refused() {
    for (pattern, said) in
        [("", "it is empty"), ("src/", "names a directory"), ("[a", "["), ("{a", "{")]
    {
        let seen = call("find_files", json!({"pattern": pattern})).check();
        let error = seen.error("execution_error");
        assert_eq!(
            (&error["detail"]["kind"], &error["detail"]["field"]),
            (&json!("invalid-input"), &json!("pattern")),
            "{error:#}"
        );
        assert!(seen.message("execution_error").contains(said), "{error:#}");
    }
    let missing = call("find_files", json!({"pattern": "*", "path": "none"})).check();
    assert_eq!(missing.kind(), "not-found");
    let file =
        call("find_files", json!({"pattern": "*", "path": "README.md"})).arrange(tree).check();
    assert_eq!(file.error("execution_error")["detail"]["field"], "path");
    let _ = call("find_files", json!({"pattern": "*", "path": "../outside"}))
        .check()
        .error("permission_denied");
}

#[test]
fn at_most_a_thousand_are_shown_and_all_counted() {
    let seen = call("find_files", json!({"pattern": "*"}))
        .arrange(|world| {
            (0..1_050).for_each(|number| {
                world.file(&format!("{number:04}"), "");
            });
        })
        .check();
    let lines: Vec<&str> = seen.output().lines().collect();
    assert_eq!((lines.len(), lines[0], lines[999]), (1_001, "0000", "0999"));
    assert!(lines[1_000].starts_with("[1000 of 1050 files shown; "), "{}", lines[1_000]);
}
