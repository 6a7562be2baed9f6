//! The changes that inputs describe.
#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

use super::*;
use palisade::tool::budget::Unlimited;
use serde_json::json;
use std::fs;

fn shown(prepare: impl FnOnce(&std::path::Path), tool: &str, input: &Value) -> FileChange {
    let directory = tempfile::tempdir().unwrap();
    prepare(directory.path());
    let workspace = Workspace::open(directory.path()).unwrap();
    let input = input.to_string();
    let mut files = changes(
        (tool, SideEffects::Write, Code::Shipped),
        Some(&input),
        (&[], &DisplayedFiles::default()),
        Some(&workspace),
        &Unlimited,
    );
    assert_eq!(files.len(), 1);
    files.remove(0)
}

#[test]
fn new_file_is_shown_whole() {
    let file = shown(|_| (), "write_file", &json!({"path": "d/a.txt", "content": "one\n"}));
    assert_eq!(file.change, Change::Create);
    let diff = "--- /dev/null\n+++ b/d/a.txt\n@@ -0,0 +1 @@\n+one\n";
    assert_eq!((file.diff.as_deref(), file.added, file.removed), (Some(diff), Some(1), Some(0)));
}

#[test]
fn overwritten_patched_and_deleted_files_are_compared() {
    let there = |dir: &std::path::Path| fs::write(dir.join("a"), "one\ntwo\n").unwrap();
    let file = shown(there, "write_file", &json!({"path": "a", "content": "one\n2\n"}));
    let diff = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    assert_eq!((file.change, file.diff.as_deref()), (Change::Modify, Some(diff)));
    let file = shown(there, "patch_file", &json!({"path": "a", "old": "two", "new": "2"}));
    assert_eq!((file.change, file.diff.as_deref()), (Change::Modify, Some(diff)));
    let file = shown(there, "delete_file", &json!({"path": "a"}));
    let diff = "--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n";
    assert_eq!((file.change, file.diff.as_deref()), (Change::Delete, Some(diff)));
}

#[test]
fn file_behind_a_link_is_named_by_its_own_path() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", directory.path().join("link")).unwrap();
    let workspace = Workspace::open(directory.path()).unwrap();
    let input = json!({"path": "link/a", "content": "one\n"}).to_string();
    let call = ("write_file", SideEffects::Write, Code::Shipped);
    let projected = ["real/a".to_owned()];
    let displayed = DisplayedFiles::default();
    let files = changes(call, Some(&input), (&projected, &displayed), Some(&workspace), &Unlimited);
    assert_ne!(displayed, DisplayedFiles::default(), "and its state is recorded");
    assert_eq!(files.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["real/a"]);
}

#[test]
fn patch_that_cannot_be_made_is_explained() {
    let there = |dir: &std::path::Path| fs::write(dir.join("a"), "x x\n").unwrap();
    for (old, note) in [("x", "more than once"), ("y", "does not occur"), ("", "is empty")] {
        let file = shown(there, "patch_file", &json!({"path": "a", "old": old, "new": "z"}));
        assert_eq!(file.diff, None);
        assert!(file.note.as_ref().unwrap().contains(note), "{:?}", file.note);
    }
}

#[test]
fn large_or_binary_file_has_only_its_size() {
    let large = |dir: &std::path::Path| fs::write(dir.join("a"), "x".repeat(COMPARED + 1)).unwrap();
    let input = json!({"path": "a", "content": "y"});
    let file = shown(large, "write_file", &input);
    assert_eq!((file.change, &file.diff), (Change::Modify, &None));
    assert!(file.note.unwrap().contains("1048577 bytes"));
    let binary = |dir: &std::path::Path| fs::write(dir.join("a"), [0xff, 0]).unwrap();
    assert!(shown(binary, "write_file", &input).note.unwrap().contains("binary (2 bytes)"));
}

#[test]
fn protected_file_shows_no_content() {
    let repository = |dir: &std::path::Path| {
        fs::create_dir(dir.join(".git")).unwrap();
        fs::write(dir.join(".git/config"), "secret\n").unwrap();
        std::os::unix::fs::symlink(".git/config", dir.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.join("out")).unwrap();
    };
    for path in [".git/config", "link", "out", "../a"] {
        let file = shown(repository, "write_file", &json!({"path": path, "content": "x"}));
        assert_eq!((file.change, file.diff), (Change::Unknown, None), "{path}");
    }
}

#[test]
fn hostile_name_cannot_forge_a_diff() {
    let path = "a\n+++ b/other\u{202e}";
    let file = shown(|_| (), "write_file", &json!({"path": path, "content": "x\n"}));
    let diff = file.diff.unwrap_or_default();
    assert_eq!(diff.lines().filter(|line| line.starts_with("+++")).count(), 1, "{diff}");
    assert!(!diff.contains('\u{202e}'));
    assert_eq!(file.path, path);
}

#[test]
fn tool_that_cannot_change_files_shows_none() {
    let input = json!({"path": "a", "content": "x"}).to_string();
    let (call, none) = (("post", SideEffects::Network, Code::Other), DisplayedFiles::default());
    assert!(changes(call, Some(&input), (&[], &none), None, &Unlimited).is_empty());
}

/// Tools accept members beside those of their schema, and another plugin's tool may do anything.
#[test]
fn diff_is_shown_only_where_the_code_is_known_to_make_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), "one\n").unwrap();
    let workspace = Workspace::open(directory.path()).unwrap();
    let content = json!({"path": "a", "content": "harmless"});
    let patch = json!({"path": "a", "old": "one", "new": "evil", "content": "one\n"});
    for (tool, class, code, input) in [
        ("delete_file", SideEffects::Write, Code::Shipped, &content),
        ("patch_file", SideEffects::Write, Code::Shipped, &patch),
        ("shell", SideEffects::Execute, Code::Other, &content),
        ("write_file", SideEffects::Write, Code::Other, &content),
    ] {
        let projected = ["a".to_owned()];
        let input = input.to_string();
        let (call, displayed) = ((tool, class, code), DisplayedFiles::default());
        let shown = (&projected[..], &displayed);
        let files = changes(call, Some(&input), shown, Some(&workspace), &Unlimited);
        assert_eq!(displayed, DisplayedFiles::default(), "{tool}");
        assert_eq!((files.len(), files[0].change), (1, Change::Unknown), "{tool}");
        assert_eq!(files[0].diff, None, "{tool}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn file_of_the_kernel_is_not_read() {
    let root = Workspace::open("/".as_ref()).unwrap();
    for path in ["proc/version", "/proc/self/environ", "proc/self/new"] {
        let input = json!({"path": path, "content": "x"}).to_string();
        let call = ("write_file", SideEffects::Write, Code::Shipped);
        let none = DisplayedFiles::default();
        let files = changes(call, Some(&input), (&[], &none), Some(&root), &Unlimited);
        assert_eq!((files[0].change, &files[0].diff), (Change::Unknown, &None), "{path}");
        assert!(files[0].note.as_ref().unwrap().contains("of the kernel"), "{:?}", files[0].note);
    }
}

#[test]
fn files_that_were_not_read_in_time_are_shown_with_the_reason() {
    let paths = ["old.txt".to_owned(), "b".to_owned()];
    let files = unread(SideEffects::Write, &paths, "too late");
    let shown: Vec<_> = files.iter().map(|it| (it.path.as_str(), it.change)).collect();
    assert_eq!(shown, [("old.txt", Change::Unknown), ("b", Change::Unknown)]);
    assert!(files.iter().all(|file| file.note.as_deref() == Some("too late")));
    assert!(unread(SideEffects::Read, &paths, "too late").is_empty());
}
