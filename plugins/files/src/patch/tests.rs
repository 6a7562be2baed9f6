//! Tests of `patch_file`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use tempfile::{TempDir, tempdir};

fn holding(content: impl AsRef<[u8]>) -> TempDir {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("f"), content).unwrap();
    directory
}

fn patched(directory: &TempDir, old: &str, new: &str) -> Result<String> {
    patch(&Workspace::of(directory.path()), Path::new("f"), old, new)
}

fn content(directory: &TempDir) -> Vec<u8> {
    fs::read(directory.path().join("f")).unwrap()
}

/// Returns the error of a refused patch; the file must be unchanged.
fn refused(before: impl AsRef<[u8]>, old: &str, new: &str) -> String {
    let directory = holding(&before);
    let said = patched(&directory, old, new).unwrap_err().to_string();
    assert_eq!(content(&directory), before.as_ref());
    said
}

#[test]
fn unique_text_is_replaced_and_shown_as_diff() {
    let directory = holding("one\ntwo\nthree\n");
    let diff = patched(&directory, "two", "2").unwrap();
    assert_eq!(diff, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    assert_eq!(content(&directory), b"one\n2\nthree\n");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn surrounding_bytes_are_unchanged() {
    let directory = holding("\u{feff}ä\r\nold\r\n\tß");
    patched(&directory, "old\r\n", "").unwrap();
    assert_eq!(content(&directory), "\u{feff}ä\r\n\tß".as_bytes());
}

#[test]
fn new_text_is_inserted_verbatim() {
    let directory = holding("a");
    patched(&directory, "a", "$0 \\1 {}").unwrap();
    assert_eq!(content(&directory), b"$0 \\1 {}");
}

#[test]
fn repeated_text_is_refused_with_its_places() {
    assert!(
        refused("x\ny\nx\n", "x", "z")
            .contains("it occurs 2 times in `f`, at lines 0, 2 (counted from 0)")
    );
}

#[test]
fn missing_text_is_refused_with_near_matches() {
    assert!(
        refused("a  b\n", "a b", "c")
            .contains("it does not occur in `f`; line 0 differs from it only in white space")
    );
}

#[test]
fn empty_and_unchanged_patches_are_refused() {
    assert_eq!(
        refused("a", "", "b"),
        "old: it is empty; give the text to replace, or use write_file to write a whole file"
    );
    assert_eq!(refused("a", "a", "a"), "new: it equals old, so that nothing would change");
}

#[test]
fn binary_file_is_refused() {
    assert!(refused(b"a\0b", "a", "c").contains("`f` is binary: byte 1 is NUL"));
    assert!(refused(b"a\xff", "a", "c").contains("byte 1 is not valid UTF-8"));
}

#[test]
fn oversized_file_is_refused_unread() {
    let directory = holding("");
    let file = fs::File::options().write(true).open(directory.path().join("f")).unwrap();
    file.set_len(MAX_FILE_BYTES + 1).unwrap();
    let said = patched(&directory, "a", "b").unwrap_err().to_string();
    assert_eq!(said, "`f` has 8388609 bytes, and 8388608 is the most that is patched");
}

#[test]
fn missing_file_and_a_directory_are_refused() {
    let directory = tempdir().unwrap();
    assert!(patched(&directory, "a", "b").unwrap_err().to_string().contains("`f` does not exist"));
    fs::create_dir(directory.path().join("f")).unwrap();
    assert!(patched(&directory, "a", "b").unwrap_err().to_string().contains("`f` is a directory"));
}

#[cfg(unix)]
#[test]
fn link_is_refused_and_its_target_untouched() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("target"), "a").unwrap();
    std::os::unix::fs::symlink("target", directory.path().join("f")).unwrap();
    assert!(
        patched(&directory, "a", "b")
            .unwrap_err()
            .to_string()
            .contains("`f` is a symbolic link to `target`")
    );
    assert_eq!(fs::read(directory.path().join("target")).unwrap(), b"a");
}
