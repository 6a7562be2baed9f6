//! Tests of `find_files`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use palisade_guest::testing;
use serde_json::json;
use std::fs;
use tempfile::{TempDir, tempdir};

fn holding<'a>(files: impl IntoIterator<Item = &'a str>) -> TempDir {
    let directory = tempdir().unwrap();
    for file in files {
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    directory
}

fn found(directory: &TempDir, pattern: &str, path: &str) -> Result<String> {
    find(&Tree::of(directory.path(), Path::new(path)), pattern, &testing::context())
}

#[test]
fn paths_are_relative_to_the_workspace_and_sorted() {
    let directory = holding(["src/b.rs", "src/a/z.rs", "src/a.rs", "lib.rs", "README.md"]);
    assert_eq!(found(&directory, "*.rs", "").unwrap(), "lib.rs\nsrc/a.rs\nsrc/a/z.rs\nsrc/b.rs\n");
    assert_eq!(found(&directory, "*.rs", "src/a").unwrap(), "src/a/z.rs\n");
}

#[test]
fn pattern_with_slash_matches_below_the_directory() {
    let directory = holding(["host/src/lib.rs", "src/lib.rs"]);
    assert_eq!(found(&directory, "src/*.rs", "").unwrap(), "src/lib.rs\n");
    assert_eq!(found(&directory, "src/*.rs", "host").unwrap(), "host/src/lib.rs\n");
}

#[test]
fn empty_result_has_the_number_of_files() {
    let directory = holding(["a", "d/b"]);
    assert_eq!(
        found(&directory, "*.rs", "").unwrap(),
        "[no file matches `*.rs` below `.`; 2 files were looked at, ignored ones left out]\n"
    );
    assert!(found(&directory, "a", "d").unwrap().contains("below `d`; 1 files were looked at"));
}

#[test]
fn more_than_a_thousand_files_are_cut_with_a_marker() {
    let directory = tempdir().unwrap();
    let add = |number: usize| fs::write(directory.path().join(format!("{number:05}")), "").unwrap();
    (0..1_000).for_each(add);
    assert_eq!(found(&directory, "*", "").unwrap().lines().count(), 1_000);
    (1_000..2_500).for_each(add);
    let output = found(&directory, "*", "").unwrap();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(
        (lines.len(), lines.first(), lines.get(999)),
        (1_001, Some(&"00000"), Some(&"00999"))
    );
    assert_eq!(
        lines.last(),
        Some(&"[1000 of 2500 files shown; narrow the pattern, or give a path below `.`]")
    );
}

#[test]
fn invalid_pattern_is_a_field_error() {
    assert_eq!(found(&holding([]), "[", "").unwrap_err().field(), Some("pattern"));
}

#[test]
fn path_other_than_a_directory_is_refused() {
    let directory = holding(["a"]);
    assert_eq!(
        found(&directory, "*", "a").unwrap_err().to_string(),
        "path: `a` is a file; give the directory to look in"
    );
    assert!(found(&directory, "*", "b").unwrap_err().to_string().starts_with("`b` does not exist"));
}

#[test]
fn line_feed_in_a_name_is_escaped() {
    assert_eq!(found(&holding(["a\nb"]), "*", "").unwrap(), "a\\nb\n");
}

#[test]
fn cancellation_ends_the_search() {
    let directory = holding(["a"]);
    let input = json!({"pattern": "*", "path": directory.path()});
    assert_eq!(
        testing::call::<find_files>(input.clone()).unwrap().to_text(),
        format!("{}\n", directory.path().join("a").display())
    );
    let stopped = testing::call_with::<find_files>(input, &testing::context().cancelled_after(0));
    assert_eq!(stopped, Err(Error::cancelled()));
}
