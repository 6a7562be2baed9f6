//! The rights of each class inside its sandbox; no class that needs permission runs without it.

use palisade_tests::Case;
use palisade_tests::guest::CONTAINMENT_FILES;
use serde_json::json;

use super::{all_refused, each, files, furnished, raw};

#[test]
fn class_none_sees_no_file() {
    // The root has no directory behind it.
    assert_eq!(raw("raw_none", &[json!({"op": "preopens", "path": ""})]).1, ["/"]);
    for op in [
        "open",
        "open-directory",
        "open-write",
        "create",
        "truncate",
        "stat",
        "hash",
        "readlink",
        "mkdir",
        "rmdir",
        "unlink",
        "set-times-at",
        "rename",
        "link",
        "symlink",
        "climb",
    ] {
        let attempts = each(op, &["file.txt", "dir", ".", "", "../secret.txt"], true);
        let (seen, answers) = raw("raw_none", &attempts);
        all_refused(&attempts, &answers);
        seen.changed_nothing();
    }
    for (op, path) in [
        ("read", "file.txt"),
        ("read", "/file.txt"),
        ("list", "."),
        ("list", "/"),
        ("stat", "."),
        ("write", "x"),
    ] {
        let seen = files("in_none", op, path, "");
        assert_eq!(seen.result["success"], false, "{op} {path}");
        seen.changed_nothing();
    }
}

#[test]
fn class_network_sees_no_file_by_default() {
    for (op, path) in [("read", "file.txt"), ("list", "/"), ("write", "x")] {
        let seen = files("in_network", op, path, "");
        assert_eq!(seen.result["success"], false, "{op} {path}");
        seen.changed_nothing();
    }
}

#[test]
fn other_classes_have_the_root_directory() {
    for tool in ["raw_read", "raw_write"] {
        assert_eq!(raw(tool, &[json!({"op": "preopens", "path": ""})]).1, ["/"], "{tool}");
    }
}

#[test]
fn classes_read_write_and_execute_read_the_workspace() {
    for tool in ["in_read", "in_write", "in_execute"] {
        assert_eq!(files(tool, "read", "file.txt", "").output(), "inside", "{tool}");
    }
}

#[test]
fn classes_write_and_execute_change_the_workspace() {
    for tool in ["in_write", "in_execute"] {
        let seen = files(tool, "write", "file.txt", "");
        seen.left("file.txt", Some("changed")).modified(&["file.txt"]);
    }
}

#[test]
fn risky_classes_require_an_allowance() {
    for (tool, class) in
        [("in_write", "write"), ("in_execute", "execute"), ("in_network", "network")]
    {
        let case =
            Case::new(CONTAINMENT_FILES, tool).input(json!({"op": "write", "path": "file.txt"}));
        let seen = case.arrange(furnished).check();
        assert_eq!(seen.error("permission_denied")["detail"]["reason"], "no_confirmer", "{tool}");
        assert!(seen.message("permission_denied").contains(&format!("--allow {class}")), "{tool}");
        seen.changed_nothing();
        assert!(!seen.events.iter().any(|event| event.name() == "tool.called"));
    }
}

#[test]
fn allowance_applies_to_one_class() {
    let case = Case::new(CONTAINMENT_FILES, "in_execute")
        .input(json!({"op": "write", "path": "file.txt"}));
    let seen = case.allow(palisade::SideEffects::Write).arrange(furnished).check();
    assert_eq!(seen.error("permission_denied")["detail"]["reason"], "no_confirmer");
    seen.changed_nothing();
}
