//! Paths that a standard library would normalize, passed directly to the host.

use serde_json::json;

use super::{all_refused, each, raw};

/// Paths that escape the workspace, by every known way.
pub(crate) const OUT: [&str; 17] = [
    "../secret.txt",
    "..",
    "../",
    "/etc/passwd",
    "/",
    "//etc/passwd",
    "dir/../../secret.txt",
    "dir/deep/../../../secret.txt",
    "./../secret.txt",
    "dir/up/../secret.txt",
    "dir/up-twice/secret.txt",
    "out-dir/secret.txt",
    "out-dir-absolute/secret.txt",
    "etc/passwd",
    "host-root/etc/passwd",
    "proc/etc/passwd",
    "self-absolute/../secret.txt",
];

#[test]
fn outside_path_cannot_be_opened_or_inspected() {
    for op in ["open", "open-directory", "stat", "hash", "readlink"] {
        for follow in [false, true] {
            let attempts = each(op, &OUT, follow);
            let (seen, answers) = raw("raw_read", &attempts);
            all_refused(&attempts, &answers);
            seen.changed_nothing();
        }
    }
}

#[test]
fn outside_path_cannot_be_changed() {
    for op in ["create", "open-write", "mkdir", "rmdir", "unlink", "set-times-at", "rename", "link"]
    {
        let attempts = each(op, &OUT, true);
        let (seen, answers) = raw("raw_write", &attempts);
        all_refused(&attempts, &answers);
        seen.changed_nothing().modified(&[]);
    }
}

#[test]
fn nothing_can_be_moved_or_linked_outside() {
    for op in ["rename", "link"] {
        let attempts: Vec<_> =
            OUT.iter().map(|out| json!({"op": op, "path": "file.txt", "to": out})).collect();
        let (seen, answers) = raw("raw_write", &attempts);
        all_refused(&attempts, &answers);
        seen.changed_nothing();
    }
}

#[test]
fn links_cannot_be_created() {
    let attempts: Vec<_> = ["file.txt", "../secret.txt", "/etc/passwd", "nowhere"]
        .iter()
        .map(|to| json!({"op": "symlink", "path": "made", "to": to}))
        .collect();
    let (seen, answers) = raw("raw_write", &attempts);
    all_refused(&attempts, &answers);
    seen.changed_nothing();
}

#[test]
fn inside_directory_is_no_way_out() {
    let (_, answers) = raw("raw_read", &[json!({"op": "climb", "path": "dir/deep"})]);
    assert!(answers[0].starts_with("refused: "), "{answers:?}");
}

#[test]
fn invalid_paths_are_refused() {
    let long = "x/".repeat(3000);
    let attempts =
        each("open", &["", "a\0b", &long, &"y".repeat(300), "file.txt/", "file.txt/inner"], true);
    let (_, answers) = raw("raw_read", &attempts);
    all_refused(&attempts, &answers);
}

#[test]
fn legitimate_paths_are_opened() {
    let attempts = each(
        "open",
        &[
            "file.txt",
            "./file.txt",
            "dir/inner.txt",
            "dir//inner.txt",
            "dir/../file.txt",
            "dir/deep/../inner.txt",
            "to-dir/inner.txt",
        ],
        true,
    );
    let (_, answers) = raw("raw_read", &attempts);
    assert_eq!(answers, ["inside", "inside", "inner", "inner", "inside", "inner", "inner"]);
}

#[test]
fn legitimate_changes_are_made() {
    let (seen, answers) = raw(
        "raw_write",
        &[
            json!({"op": "create", "path": "new.txt"}),
            json!({"op": "mutate", "path": "dir"}),
            json!({"op": "rename", "path": "new.txt", "to": "dir/made/moved.txt"}),
            json!({"op": "unlink", "path": "dir/inner.txt"}),
            json!({"op": "rmdir", "path": "empty"}),
            json!({"op": "set-times-at", "path": "file.txt"}),
        ],
    );
    assert_eq!(answers, ["created", "done", "done", "done", "done", "done"]);
    seen.left("dir/made/moved.txt", Some("")).left("dir/inner.txt", None);
}
