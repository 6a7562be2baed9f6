//! `patch_file`: replaces a text that occurs exactly once, and returns a diff.

use crate::{allowed, call};
use palisade_tests::observed::Observed;
use serde_json::json;

const TEXT: &str = "fn main() {\n    one();\n    two();\n    one();\n}\n";

fn patch(text: impl AsRef<[u8]> + 'static, old: &str, new: &str) -> Observed {
    allowed("patch_file", json!({"path": "f.rs", "old": old, "new": new}))
        .arrange(move |world| {
            world.file("f.rs", &text);
        })
        .check()
}

#[track_caller]
fn refused(seen: &Observed, field: &str, said: &str) {
    let error = seen.error("execution_error");
    assert_eq!(
        (&error["detail"]["kind"], &error["detail"]["field"]),
        (&json!("invalid-input"), &json!(field)),
        "{error:#}"
    );
    assert!(seen.message("execution_error").contains(said), "{error:#}");
    seen.changed_nothing().modified(&[]);
}

#[test]
fn one_place_is_changed_and_shown_as_diff() {
    let seen = patch(TEXT, "    two();\n", "    2();\n    3();\n");
    seen.left("f.rs", Some("fn main() {\n    one();\n    2();\n    3();\n    one();\n}\n"))
        .modified(&["f.rs"]);
    for line in [
        "--- a/f.rs",
        "+++ b/f.rs",
        "@@ -",
        "-    two();",
        "+    2();",
        "+    3();",
        " fn main() {",
    ] {
        assert!(
            seen.output().lines().any(|shown| shown.starts_with(line)),
            "{line}: {}",
            seen.output()
        );
    }
    for world in seen.worlds() {
        assert_eq!(world.inside().len(), 1, "no temporary file stays");
    }
}

#[test]
fn text_can_be_removed_within_a_line() {
    patch("a b c", "b ", "").left("f.rs", Some("a c"));
    patch("ä🦀ö", "🦀", "x").left("f.rs", Some("äxö"));
}

#[test]
fn repeated_text_is_counted_with_its_places() {
    refused(
        &patch(TEXT, "one();", "x"),
        "old",
        "it occurs 2 times in `f.rs`, at lines 1, 3 (counted from 0)",
    );
    refused(
        &patch("x\n".repeat(25), "x", "y"),
        "old",
        "it occurs 25 times in `f.rs`, at lines 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and more",
    );
    refused(&patch("aaa", "aa", "b"), "old", "it occurs 2 times");
}

#[test]
fn missing_text_is_refused_with_near_matches() {
    refused(&patch(TEXT, "three();", "x"), "old", "it does not occur in `f.rs`");
    refused(&patch(TEXT, "\ttwo();", "x"), "old", "line 2 differs from it only in white space");
    refused(&patch("a\r\nb\r\n", "a\nb", "x"), "old", "CRLF");
}

#[test]
fn empty_change_is_refused() {
    refused(&patch(TEXT, "", "x"), "old", "it is empty");
    refused(&patch(TEXT, "two", "two"), "new", "nothing would change");
}

#[test]
fn only_existing_text_files_are_patched() {
    let binary = patch(&b"a\0b"[..], "a", "x");
    assert!(
        binary.message("execution_error").contains("is binary: byte 1 is NUL"),
        "{:#}",
        binary.result
    );
    binary.changed_nothing();
    let missing = allowed("patch_file", json!({"path": "none", "old": "a", "new": "b"})).check();
    assert_eq!(missing.kind(), "not-found");
    let large = patch("x".repeat((8 << 20) + 1), "y", "z");
    assert!(large.message("execution_error").contains("8388608 is the most"), "{:#}", large.result);
    let folder = allowed("patch_file", json!({"path": "d", "old": "a", "new": "b"}))
        .arrange(|world| {
            world.folder("d");
        })
        .check();
    assert!(folder.message("execution_error").contains("is a directory"), "{:#}", folder.result);
}

#[test]
fn outside_file_is_unchanged() {
    for path in ["../secret.txt", "out"] {
        let seen = allowed("patch_file", json!({"path": path, "old": "canary", "new": "b"}))
            .arrange(|world| {
                world.link("out", "@/secret.txt");
            })
            .check();
        let _ = seen.error("permission_denied");
        seen.changed_nothing();
    }
}

#[test]
fn patching_requires_an_allowance() {
    let asked = call("patch_file", json!({"path": "f", "old": "a", "new": "b"})).arrange(|world| {
        world.file("f", "a");
    });
    let seen = asked.check();
    let _ = seen.error("permission_denied");
    seen.changed_nothing();
}
