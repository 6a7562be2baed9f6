//! Tests of the walk.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use tempfile::{TempDir, tempdir};

/// Returns a directory with these files; each contains its own path, unless content follows a `=`.
fn holding(files: &[&str]) -> TempDir {
    let directory = tempdir().unwrap();
    for file in files {
        let (path, content) = file.split_once('=').unwrap_or((file, file));
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

fn walked(directory: &TempDir, base: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let unread = Tree::of(directory.path(), Path::new(base)).each(|found| {
        paths.push(found.path.to_str().unwrap().to_owned());
        Ok(Next::More)
    });
    assert_eq!(unread.unwrap().note(), "");
    paths
}

#[test]
fn files_are_sorted_and_include_hidden_ones() {
    let directory = holding(&["b/2", "b/1", "a.txt", ".github/ci.yml", "c"]);
    assert_eq!(walked(&directory, ""), [".github/ci.yml", "a.txt", "b/1", "b/2", "c"]);
    assert_eq!(walked(&directory, "./b/."), ["b/1", "b/2"]);
    assert_eq!(walked(&directory, "b/2"), ["b/2"]);
}

#[test]
fn repository_directory_is_skipped_unless_requested() {
    let directory = holding(&[".git/config", "sub/.git", "sub/a"]);
    assert_eq!(walked(&directory, ""), ["sub/a"]);
    assert_eq!(walked(&directory, ".git"), [".git/config"]);
}

#[test]
fn ignore_rules_apply_without_a_repository() {
    let directory = holding(&[
        ".gitignore=*.log\n/out/\n",
        "a.log",
        "keep",
        "out/x",
        "sub/out/y",
        "sub/.ignore=z",
        "sub/z",
    ]);
    assert_eq!(walked(&directory, ""), [".gitignore", "keep", "sub/.ignore", "sub/out/y"]);
}

#[test]
fn ignore_rules_of_parents_apply() {
    let directory = holding(&[
        ".gitignore=*.log",
        "a/.gitignore=!b/keep.log\n*.tmp",
        "a/b/c.log",
        "a/b/keep.log",
        "a/b/d.tmp",
        "a/b/e",
    ]);
    assert_eq!(walked(&directory, "a/b"), ["a/b/e", "a/b/keep.log"]);
}

#[test]
fn ignored_path_is_searched_on_request() {
    let directory = holding(&[".gitignore=target/\n*.log", "target/a", "target/b/c", "x.log"]);
    assert_eq!(walked(&directory, "target"), ["target/a", "target/b/c"]);
    assert_eq!(walked(&directory, "target/b"), ["target/b/c"]);
    assert_eq!(walked(&directory, "x.log"), ["x.log"]);
}

#[cfg(unix)]
#[test]
fn links_are_listed_and_not_followed() {
    let directory = holding(&["d/a"]);
    std::os::unix::fs::symlink(".", directory.path().join("d/loop")).unwrap();
    assert_eq!(walked(&directory, ""), ["d/a", "d/loop"]);
    let mut kinds = Vec::new();
    let visit = |found: Found| {
        kinds.push(found.is_file);
        Ok(Next::More)
    };
    Tree::of(directory.path(), Path::new("")).each(visit).unwrap();
    assert_eq!(kinds, [true, false]);
}

#[test]
fn visitor_may_end_the_walk() {
    let directory = holding(&["a", "b", "c"]);
    let mut count = 0;
    let visit = |_| {
        count += 1;
        Ok(if count == 2 { Next::Stop } else { Next::More })
    };
    Tree::of(directory.path(), Path::new("")).each(visit).unwrap();
    assert_eq!(count, 2);
}

#[test]
fn unreadable_entry_is_recorded_and_skipped() {
    let directory = holding(&["a"]);
    let tree = Tree::of(directory.path(), Path::new("gone"));
    let note = tree.each(|_| Ok(Next::More)).unwrap().note();
    assert_eq!(note, "[1 entry could not be read: `gone`: No such file or directory]\n");
}
