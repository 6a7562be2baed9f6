//! Symlinks of every kind: to a file, to a directory, in a chain, in a loop, dangling, at the end
//! and in the middle of a path.

use serde_json::json;

use super::{all_refused, each, files, raw};

/// Symlinks whose own target is outside.
const OUT: [&str; 10] = [
    "out-file",
    "out-file-absolute",
    "out-dir",
    "out-dir-absolute",
    "out-chain",
    "out-chain-through-dir",
    "out-dangling",
    "dir/up-twice",
    "etc",
    "host-root",
];

#[track_caller]
fn is_refused(op: &str, path: &str) {
    for tool in ["in_read", "in_write"] {
        let seen = files(tool, op, path, "");
        assert!(seen.result["success"] == false, "{op} {path}: {:#}", seen.result);
        seen.changed_nothing();
    }
}

#[test]
fn link_to_an_outside_file_is_not_followed() {
    for op in ["read", "stat", "append", "truncate", "write"] {
        is_refused(op, "out-file");
        is_refused(op, "out-file-absolute");
    }
}

#[test]
fn link_to_an_outside_directory_is_not_followed() {
    for op in ["list", "stat"] {
        is_refused(op, "out-dir");
        is_refused(op, "out-dir-absolute");
    }
    for op in ["read", "write", "create", "mkdir", "unlink"] {
        is_refused(op, "out-dir/secret.txt");
        is_refused(op, "out-dir-absolute/folder/secret.txt");
    }
}

#[test]
fn link_chain_ending_outside_is_not_followed() {
    for op in ["read", "write", "stat"] {
        is_refused(op, "out-chain");
        is_refused(op, "out-chain-through-dir");
    }
}

#[test]
fn link_chain_inside_is_followed() {
    assert_eq!(files("in_read", "read", "chain", "").output(), "inside");
    assert_eq!(files("in_read", "read", "to-file", "").output(), "inside");
    assert_eq!(files("in_read", "read", "dir/to-sibling", "").output(), "inside");
    assert_eq!(
        files("in_read", "list", "to-dir", "").output(),
        "deep inner.txt to-sibling up up-twice"
    );
}

#[test]
fn link_loop_is_an_error() {
    for path in ["loop-a", "self", "loop-a/inner.txt", "self/inner.txt"] {
        for op in ["read", "stat", "write", "list"] {
            is_refused(op, path);
        }
    }
}

#[test]
fn dangling_outside_link_creates_nothing() {
    for op in ["read", "write", "create", "append", "stat"] {
        is_refused(op, "out-dangling");
    }
}

#[test]
fn dangling_inside_link_leads_to_nothing() {
    let seen = files("in_read", "read", "dangling-inside", "");
    assert_eq!(seen.kind(), "not-found");
}

#[test]
fn link_with_trailing_slash_is_still_a_link() {
    for path in ["out-dir/", "out-dir-absolute/", "etc/", "host-root/", "dir/up-twice/"] {
        for op in ["list", "stat"] {
            is_refused(op, path);
        }
    }
    assert_eq!(
        files("in_read", "list", "to-dir/", "").output(),
        "deep inner.txt to-sibling up up-twice"
    );
}

#[test]
fn link_within_a_path_counts_like_one_at_its_end() {
    for path in [
        "out-dir/folder/secret.txt",
        "dir/up/../secret.txt",
        "dir/up-twice/outside/secret.txt",
        "etc/hostname",
    ] {
        for op in ["read", "stat", "write"] {
            is_refused(op, path);
        }
    }
    assert_eq!(files("in_read", "read", "to-dir/inner.txt", "").output(), "inner");
    assert_eq!(files("in_read", "read", "dir/up/file.txt", "").output(), "inside");
}

#[test]
fn link_itself_can_be_inspected_and_removed() {
    assert_eq!(files("in_read", "lstat", "to-file", "").output(), "link");
    assert_eq!(files("in_read", "readlink", "to-file", "").output(), "file.txt");
    let seen = files("in_write", "unlink", "out-file", "");
    assert_eq!(seen.output(), "done");
    seen.left("out-file", None).modified(&["out-file"]);
}

#[test]
fn outside_link_does_not_reveal_its_target() {
    // `readlink` returns the stored target or fails; an absolute target would disclose the
    // workspace's location.
    let attempts = each("readlink", &OUT, false);
    let (seen, answers) = raw("raw_read", &attempts);
    assert_eq!(answers.len(), OUT.len());
    for (world, result) in seen.results() {
        let place = world.outer().to_string_lossy().into_owned();
        assert!(!result.to_string().contains(&place), "{result:#}");
    }
}

#[test]
fn raw_calls_follow_no_outside_link() {
    for op in ["open", "open-directory", "stat", "hash"] {
        let attempts = each(op, &OUT, true);
        let (_, answers) = raw("raw_read", &attempts);
        all_refused(&attempts, &answers);
    }
    for op in ["open", "open-directory"] {
        let attempts = each(op, &OUT, false);
        let (_, answers) = raw("raw_read", &attempts);
        all_refused(&attempts, &answers);
    }
}

#[test]
fn hard_link_to_a_link_is_no_way_out() {
    let hard = |from: &str| json!({"op": "link", "path": from, "to": "made", "follow": true});
    let attempts = [hard("out-file"), hard("out-chain"), hard("out-file-absolute")];
    let (_, answers) = raw("raw_write", &attempts);
    all_refused(&attempts, &answers);
}
