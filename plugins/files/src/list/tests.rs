//! Tests of `list_dir`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use tempfile::{TempDir, tempdir};

fn listed(directory: &TempDir, path: &str) -> Result<String> {
    list(&Workspace::of(directory.path()), Path::new(path))
}

#[test]
fn entries_are_sorted_with_type_and_size() {
    let directory = tempdir().unwrap();
    fs::create_dir_all(directory.path().join("src/deeper")).unwrap();
    fs::write(directory.path().join("b.txt"), "four").unwrap();
    fs::write(directory.path().join(".hidden"), "").unwrap();
    fs::write(directory.path().join("A"), "x").unwrap();
    assert_eq!(
        listed(&directory, "").unwrap(),
        ".hidden (0 bytes)\nA (1 byte)\nb.txt (4 bytes)\nsrc/\n"
    );
    assert_eq!(listed(&directory, "src").unwrap(), "deeper/\n");
}

#[cfg(unix)]
#[test]
fn links_are_marked_and_not_followed() {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("d")).unwrap();
    std::os::unix::fs::symlink("d", directory.path().join("to-d")).unwrap();
    std::os::unix::fs::symlink("nowhere", directory.path().join("to-nowhere")).unwrap();
    assert_eq!(listed(&directory, "").unwrap(), "d/\nto-d@\nto-nowhere@\n");
}

#[cfg(unix)]
#[test]
fn line_break_in_a_name_is_escaped() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("a\nforged"), "").unwrap();
    assert_eq!(listed(&directory, "").unwrap(), "a\\nforged (0 bytes)\n");
}

#[test]
fn empty_directory_is_reported() {
    assert_eq!(listed(&tempdir().unwrap(), "").unwrap(), "[`.` is empty]");
}

#[test]
fn more_than_a_thousand_entries_are_cut_with_a_marker() {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("many")).unwrap();
    let add =
        |number: usize| fs::write(directory.path().join(format!("many/{number:05}")), "").unwrap();
    (0..1_000).for_each(add);
    assert_eq!(listed(&directory, "many").unwrap().lines().count(), 1_000);
    (1_000..2_500).rev().for_each(add);
    let output = listed(&directory, "many").unwrap();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 1_001);
    assert_eq!(lines.first(), Some(&"00000 (0 bytes)"));
    assert_eq!(lines.get(999), Some(&"00999 (0 bytes)"));
    let marker = lines.last().unwrap();
    assert!(
        marker.starts_with("[1000 of 2500 entries shown;") && marker.contains("\"path\":\"many\""),
        "{marker}"
    );
}

#[test]
fn file_is_refused_with_advice() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("f"), "").unwrap();
    let said = listed(&directory, "f").unwrap_err().to_string();
    assert_eq!(said, "`f` is not a directory; use read_file to read a file");
}

#[test]
fn missing_directory_is_not_found() {
    let said = listed(&tempdir().unwrap(), "d").unwrap_err().to_string();
    assert_eq!(said, "`d` does not exist; list_dir and find_files show what does");
}
