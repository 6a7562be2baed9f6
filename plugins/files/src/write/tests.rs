//! Tests of `write_file`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use tempfile::{TempDir, tempdir};

fn wrote(directory: &TempDir, path: &str, content: &str) -> Result<String> {
    write(&Workspace::of(directory.path()), Path::new(path), content)
}

fn refused(directory: &TempDir, path: &str) -> String {
    wrote(directory, path, "new").unwrap_err().to_string()
}

fn content(directory: &TempDir, path: &str) -> String {
    fs::read_to_string(directory.path().join(path)).unwrap()
}

#[test]
fn new_file_is_created_with_its_directories() {
    let directory = tempdir().unwrap();
    assert_eq!(
        wrote(&directory, "a/b/c.txt", "héllo\r\n").unwrap(),
        "Created `a/b/c.txt` (8 bytes)."
    );
    assert_eq!(content(&directory, "a/b/c.txt"), "héllo\r\n");
}

#[test]
fn existing_file_is_overwritten_and_its_size_reported() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("a.txt"), "twelve bytes").unwrap();
    assert_eq!(wrote(&directory, "a.txt", "").unwrap(), "Overwrote `a.txt` (0 bytes, before 12).");
    assert_eq!(content(&directory, "a.txt"), "");
}

#[test]
fn writing_is_idempotent() {
    let directory = tempdir().unwrap();
    wrote(&directory, "a.txt", "same").unwrap();
    wrote(&directory, "a.txt", "same").unwrap();
    assert_eq!(content(&directory, "a.txt"), "same");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn directory_is_not_overwritten() {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("d")).unwrap();
    assert_eq!(
        refused(&directory, "d"),
        "`d` is a directory, and only a regular file can be written"
    );
    assert_eq!(
        refused(&directory, ""),
        "`.` is a directory, and only a regular file can be written"
    );
}

#[test]
fn file_in_place_of_a_parent_is_unchanged() {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("d")).unwrap();
    fs::write(directory.path().join("d/file"), "kept").unwrap();
    assert!(
        refused(&directory, "d/file/new.txt")
            .ends_with("a part of the path is a file and not a directory")
    );
    assert!(
        refused(&directory, "d/file/deeper/new.txt")
            .ends_with("a part of the path is a file and not a directory")
    );
    assert_eq!(content(&directory, "d/file"), "kept");
}

#[cfg(unix)]
#[test]
fn link_is_neither_replaced_nor_written_through() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("target"), "kept").unwrap();
    std::os::unix::fs::symlink("target", directory.path().join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", directory.path().join("dangling")).unwrap();
    assert_eq!(
        refused(&directory, "link"),
        "`link` is a symbolic link to `target`, and only a regular file can be written"
    );
    assert!(refused(&directory, "dangling").contains("a symbolic link to `nowhere`"));
    assert_eq!(content(&directory, "target"), "kept");
    assert!(!directory.path().join("nowhere").exists());
}
