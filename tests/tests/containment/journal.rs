//! The changed files of a result come from the host's own change log.

use palisade::SideEffects;
use palisade_tests::Case;
use palisade_tests::guest::CONTAINMENT_FILES;
use serde_json::json;

use super::{furnished, raw};

#[test]
fn every_kind_of_change_is_listed_once_in_order() {
    let (seen, _) = raw(
        "raw_write",
        &[
            json!({"op": "create", "path": "made"}),
            json!({"op": "mkdir", "path": "folder"}),
            json!({"op": "unlink", "path": "dir/inner.txt"}),
            json!({"op": "rmdir", "path": "empty"}),
            json!({"op": "rename", "path": "dangling-inside", "to": "renamed"}),
            json!({"op": "set-times-at", "path": "dir/deep"}),
            json!({"op": "truncate", "path": "to-file", "follow": true}),
            json!({"op": "set-times-at", "path": "file.txt"}),
        ],
    );
    seen.modified(&[
        "made",
        "folder",
        "dir/inner.txt",
        "empty",
        "dangling-inside",
        "renamed",
        "dir/deep",
        "file.txt",
    ]);
}

#[test]
fn created_and_removed_file_is_no_change() {
    let (seen, _) = raw(
        "raw_write",
        &[
            json!({"op": "create", "path": "made"}),
            json!({"op": "unlink", "path": "made"}),
            json!({"op": "mkdir", "path": "folder"}),
            json!({"op": "rmdir", "path": "folder"}),
        ],
    );
    seen.modified(&[]).changed_nothing();
}

#[test]
fn changed_names_are_listed_unambiguously() {
    for name in ["a\nb", "a\\nb", "a\u{1b}[2J\u{202e}b", "a\\u{1b}[2Jb", "\u{fffd}"] {
        let case =
            Case::new(CONTAINMENT_FILES, "in_write").input(json!({"op": "create", "path": name}));
        case.allow(SideEffects::Write).arrange(furnished).check().modified(&[name]);
    }
}

#[test]
fn terminal_shows_changed_names_escaped() {
    let case = Case::new(CONTAINMENT_FILES, "in_write")
        .input(json!({"op": "create", "path": "a\u{1b}[2J\u{202e}b"}));
    let case = case.allow(SideEffects::Write);
    let ran = case.program(&case.world()).run().exits_with(0);
    assert!(
        ran.stdout.contains(r"a\u001b[2J\u202eb") && !ran.stdout.contains(['\u{1b}', '\u{202e}']),
        "{}",
        ran.stdout
    );
}
