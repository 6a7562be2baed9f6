//! `delete_file`: removes one file, or a symlink itself.

use crate::{allowed, call};
use serde_json::json;

#[test]
fn file_is_removed_and_its_siblings_stay() {
    let seen = allowed("delete_file", json!({"path": "a/b"}))
        .arrange(|world| {
            world.file("a/b", "123").file("a/c", "");
        })
        .check();
    assert_eq!(seen.output(), "Deleted `a/b` (3 bytes).");
    seen.left("a/b", None).left("a/c", Some("")).modified(&["a/b"]);
}

#[test]
fn removing_a_link_keeps_its_target() {
    of_a_link_the_link_itself(&["file", "dir", "nowhere"]);
}

#[test]
fn removing_an_outside_link_keeps_its_target() {
    of_a_link_the_link_itself(&["@/secret.txt", "@/outside", "../secret.txt"]);
}

#[track_caller]
fn of_a_link_the_link_itself(targets: &[&'static str]) {
    for &to in targets {
        let seen = allowed("delete_file", json!({"path": "link"}))
            .arrange(move |world| {
                world.file("file", "kept").file("dir/inner", "kept").link("link", to);
            })
            .check();
        assert_eq!(
            seen.output(),
            "Deleted `link` (a symbolic link; its target is untouched).",
            "{to}"
        );
        seen.left("file", Some("kept")).left("dir/inner", Some("kept")).modified(&["link"]);
        for world in seen.worlds() {
            assert!(!world.inside().contains_key(std::path::Path::new("link")), "{to}");
        }
    }
}

#[test]
fn outside_link_in_a_path_is_refused() {
    let seen = allowed("delete_file", json!({"path": "out/secret.txt"}))
        .arrange(|world| {
            world.link("out", "@/outside");
        })
        .check();
    let _ = seen.error("permission_denied");
    seen.changed_nothing().modified(&[]);
}

#[test]
fn directories_and_missing_files_are_refused() {
    let seen = allowed("delete_file", json!({"path": "dir"}))
        .arrange(|world| {
            world.folder("dir");
        })
        .check();
    assert!(
        seen.message("execution_error")
            .contains("`dir` is a directory, and only files can be deleted"),
        "{:#}",
        seen.result
    );
    seen.changed_nothing().modified(&[]);
    let seen = allowed("delete_file", json!({"path": "missing"})).check();
    assert_eq!(seen.kind(), "not-found");
    let root = allowed("delete_file", json!({"path": "."}))
        .arrange(|world| {
            world.file("f", "");
        })
        .check();
    assert_eq!(root.result["success"], false);
    root.changed_nothing();
}

#[test]
fn removal_requires_an_allowance() {
    let seen = call("delete_file", json!({"path": "f"}))
        .arrange(|world| {
            world.file("f", "");
        })
        .check();
    let _ = seen.error("permission_denied");
    seen.changed_nothing();
}
