//! `write_file`: writes a whole file atomically, or nothing.

use crate::{allowed, call};
use palisade_tests::observed::Observed;
use serde_json::{Value, json};

fn input(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

/// Checks that the workspace holds only these paths, and no temporary file.
#[track_caller]
fn nothing_but(seen: &Observed, paths: &[&str]) {
    for world in seen.worlds() {
        let found: Vec<String> =
            world.inside().keys().map(|path| path.display().to_string()).collect();
        assert_eq!(found, paths);
    }
}

#[test]
fn file_is_created_with_its_directories() {
    let seen = allowed("write_file", input("a/b/c.txt", "grün\n")).check();
    assert_eq!(seen.output(), "Created `a/b/c.txt` (6 bytes).");
    seen.left("a/b/c.txt", Some("grün\n")).modified(&["a", "a/b", "a/b/c.txt"]);
    nothing_but(&seen, &["a", "a/b", "a/b/c.txt"]);
    assert_eq!(seen.result["usage"]["bytes_written"], 6);
}

#[test]
fn existing_file_is_replaced_as_a_whole() {
    let seen = allowed("write_file", input("f", ""))
        .arrange(|world| {
            world.file("f", "before");
        })
        .check();
    assert_eq!(seen.output(), "Overwrote `f` (0 bytes, before 6).");
    seen.left("f", Some("")).modified(&["f"]);
    nothing_but(&seen, &["f"]);
}

#[test]
fn hard_link_keeps_the_old_content() {
    let case = allowed("write_file", input("f", "new")).arrange(|world| {
        world.file("f", "old");
        std::fs::hard_link(world.root().join("f"), world.root().join("same"))
            .expect("a link can be made");
    });
    case.check().left("f", Some("new")).left("same", Some("old"));
}

#[test]
fn writing_requires_an_allowance() {
    let seen = call("write_file", input("f", "new"))
        .arrange(|world| {
            world.file("f", "old");
        })
        .check();
    assert_eq!(seen.error("permission_denied")["detail"]["reason"], "no_confirmer");
    seen.changed_nothing().modified(&[]);
}

#[test]
fn special_file_is_not_overwritten() {
    let seen = allowed("write_file", input("dir", "x"))
        .arrange(|world| {
            world.folder("dir");
        })
        .check();
    assert!(
        seen.message("execution_error").contains("`dir` is a directory, and only a regular file"),
        "{:#}",
        seen.result
    );
    seen.changed_nothing().modified(&[]);
    let below = allowed("write_file", input("file/below", "x"))
        .arrange(|world| {
            world.file("file", "");
        })
        .check();
    let _ = below.error("execution_error");
    below.changed_nothing();
}

#[test]
fn path_outside_is_refused() {
    for path in ["../x", "/tmp/x", "a/../../x", "out/x", "loose"] {
        let seen = allowed("write_file", input(path, "x"))
            .arrange(|world| {
                world.link("out", "@/outside").link("loose", "@/secret.txt");
            })
            .check();
        let _ = seen.error("permission_denied");
        seen.changed_nothing().modified(&[]);
    }
}

#[test]
fn content_is_required_and_must_be_text() {
    for input in [
        json!({"path": "f"}),
        json!({"path": "f", "content": 5}),
        json!({"content": "x"}),
        json!({"path": "f", "content": null}),
    ] {
        let seen = allowed("write_file", input).check();
        let _ = seen.error("validation_error");
        seen.changed_nothing();
    }
}
