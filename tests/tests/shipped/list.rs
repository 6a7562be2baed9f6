//! `list_dir`: lists one directory, one entry a line.

use crate::call;
use serde_json::json;

#[test]
fn entries_are_sorted_and_marked_by_type() {
    let seen = call("list_dir", json!({}))
        .arrange(|world| {
            world
                .file("b.txt", "12345")
                .file(".hidden", "")
                .folder("a")
                .file("a/inner", "x")
                .link("c", "@/secret.txt");
        })
        .check();
    assert_eq!(seen.output(), ".hidden (0 bytes)\na/\nb.txt (5 bytes)\nc@\n");
    seen.changed_nothing().modified(&[]);
}

#[test]
fn subdirectory_and_empty_directory_are_listed() {
    let below = call("list_dir", json!({"path": "a/b"})).arrange(|world| {
        world.file("a/b/c", "1");
    });
    assert_eq!(below.check().output(), "c (1 byte)\n");
    assert_eq!(call("list_dir", json!({})).check().output(), "[`.` is empty]");
}

#[test]
fn non_directory_or_missing_path_is_refused() {
    let file = call("list_dir", json!({"path": "file"}))
        .arrange(|world| {
            world.file("file", "");
        })
        .check();
    assert!(
        file.message("execution_error").contains("`file` is not a directory; use read_file"),
        "{:#}",
        file.result
    );
    let missing = call("list_dir", json!({"path": "missing"})).check();
    assert_eq!(missing.kind(), "not-found");
    let _ = call("list_dir", json!({"path": ".."})).check().error("permission_denied");
    let out = call("list_dir", json!({"path": "out"}))
        .arrange(|world| {
            world.link("out", "@/outside");
        })
        .check();
    let _ = out.error("permission_denied");
}

#[test]
fn at_most_a_thousand_are_shown_and_all_counted() {
    let seen = call("list_dir", json!({}))
        .arrange(|world| {
            (0..1_203).for_each(|number| {
                world.file(&format!("{number:04}"), "");
            });
        })
        .check();
    let lines: Vec<&str> = seen.output().lines().collect();
    assert_eq!((lines.len(), lines[0], lines[999]), (1_001, "0000 (0 bytes)", "0999 (0 bytes)"));
    assert!(
        lines[1_000].starts_with("[1000 of 1203 entries shown; see the others with find_files"),
        "{}",
        lines[1_000]
    );
}

#[test]
fn line_break_in_a_name_is_escaped() {
    let seen = call("list_dir", json!({}))
        .arrange(|world| {
            world.file("a\nb\u{1b}", "");
        })
        .check();
    assert_eq!(seen.output(), "a\\nb\\u{1b} (0 bytes)\n");
}
