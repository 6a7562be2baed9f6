//! A tool of class `read` changes nothing, by any operation.

use serde_json::{Value, json};

use super::{all_refused, files, raw};

#[test]
fn raw_changes_are_refused() {
    let on = |op: &str, path: &str| json!({"op": op, "path": path, "to": "moved", "follow": true});
    let attempts: Vec<Value> = [
        ("open-write", "file.txt"),
        ("mutate", "dir"),
        ("create", "new.txt"),
        ("create-for-reading", "new.txt"),
        ("truncate", "file.txt"),
        ("write", "file.txt"),
        ("write-stream", "file.txt"),
        ("append-stream", "file.txt"),
        ("set-size", "file.txt"),
        ("set-times", "file.txt"),
        ("set-times-at", "file.txt"),
        ("mkdir", "new"),
        ("rmdir", "empty"),
        ("unlink", "file.txt"),
        ("unlink", "to-file"),
        ("rename", "file.txt"),
        ("rename", "dir"),
        ("link", "file.txt"),
        ("symlink", "new"),
    ]
    .into_iter()
    .map(|(op, path)| on(op, path))
    .collect();
    let (seen, answers) = raw("raw_read", &attempts);
    all_refused(&attempts, &answers);
    seen.changed_nothing().modified(&[]);
    assert_eq!(seen.result["usage"]["bytes_written"], 0);
}

#[test]
fn standard_library_changes_are_refused() {
    for (op, path, to) in [
        ("write", "file.txt", ""),
        ("write", "new.txt", ""),
        ("create", "new.txt", ""),
        ("append", "file.txt", ""),
        ("truncate", "file.txt", ""),
        ("touch", "file.txt", ""),
        ("mkdir", "new", ""),
        ("rmdir", "empty", ""),
        ("unlink", "file.txt", ""),
        ("rename", "file.txt", "moved.txt"),
        ("link", "file.txt", "hard.txt"),
    ] {
        let seen = files("in_read", op, path, to);
        assert_eq!(seen.error("permission_denied")["detail"]["reason"], "sandbox", "{op} {path}");
        seen.changed_nothing().modified(&[]);
    }
}

#[test]
fn same_tool_in_class_write_may_change_files() {
    let seen = files("in_write", "touch", "file.txt", "");
    assert_eq!(seen.output(), "done");
    assert_eq!(files("in_write", "rmdir", "empty", "").output(), "done");
}

#[test]
fn every_form_of_reading_works() {
    let on = |op: &str, path: &str| json!({"op": op, "path": path});
    let attempts = [
        on("open", "file.txt"),
        on("open-directory", "dir"),
        on("readlink", "to-file"),
        on("hash", "file.txt"),
        on("sync", "file.txt"),
    ];
    let (seen, answers) = raw("raw_read", &attempts);
    assert_eq!(answers[..4], ["inside", "opened", "file.txt", "hashed"]);
    assert_eq!(seen.result["usage"]["bytes_read"], 6);
    for (op, path, expected) in
        [("read", "file.txt", "inside"), ("stat", "dir", "directory"), ("lstat", "chain", "link")]
    {
        assert_eq!(files("in_read", op, path, "").output(), expected);
    }
}
