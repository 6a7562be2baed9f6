//! `read_file`: returns the text unchanged, in parts that say how to continue.

use crate::call;
use palisade_tests::Case;
use palisade_tests::world::World;
use serde_json::{Value, json};

const LINES: &str = "zero\none\r\ntwo\nthree";

fn read(contents: impl AsRef<[u8]> + 'static, mut input: Value) -> Case {
    input["path"] = json!("dir/file.txt");
    call("read_file", input).arrange(move |world: &World| {
        world.file("dir/file.txt", &contents);
    })
}

#[test]
fn text_is_returned_verbatim() {
    for text in ["", "\n", "no newline", "a\r\n\tb\n\n", "\u{feff}grün 🦀\u{1b}[0m\u{7f}"] {
        let seen = read(text, json!({})).check();
        assert_eq!(seen.output(), text);
        seen.changed_nothing().modified(&[]);
        assert_eq!(seen.result["usage"]["bytes_read"], text.len(), "{text:?}");
    }
}

#[test]
fn range_is_zero_based_and_inclusive() {
    for (input, wanted) in [
        (json!({"start_line": 1}), "one\r\ntwo\nthree"),
        (json!({"start_line": 1, "end_line": 1}), "one\r\n"),
        (json!({"end_line": 0}), "zero\n"),
        (json!({"start_line": 2, "end_line": 3}), "two\nthree"),
        (json!({"start_line": 3, "end_line": -1}), "three"),
        (json!({"start_line": 0, "end_line": 1000}), LINES),
    ] {
        assert_eq!(read(LINES, input.clone()).check().output(), wanted, "{input}");
    }
}

#[test]
fn invalid_range_names_its_argument_and_the_length() {
    for (input, field, said) in [
        (json!({"start_line": 4}), "start_line", "has 4 lines, 0 to 3"),
        (json!({"start_line": 2, "end_line": 1}), "end_line", "1 is before start_line 2"),
    ] {
        let seen = read(LINES, input).check();
        let error = seen.error("execution_error");
        assert_eq!(
            (&error["detail"]["kind"], &error["detail"]["field"]),
            (&json!("invalid-input"), &json!(field)),
            "{error:#}"
        );
        assert!(seen.message("execution_error").contains(said), "{error:#}");
    }
    for input in [
        json!({"end_line": -2}),
        json!({"start_line": -1}),
        json!({"limit": 0}),
        json!({"limit": 4_000_001}),
    ] {
        let _ = read(LINES, input).check().error("validation_error");
    }
}

#[test]
fn default_page_is_64_kib_with_a_marker() {
    let line = "0123456789abcde\n";
    let text = line.repeat(5_000);
    let first = read(text.clone(), json!({})).check().output().to_owned();
    let (page, marker) = first.rsplit_once('\n').expect("a marker is on its own line");
    assert_eq!(page.len() + 1, 65_536);
    assert_eq!(
        marker,
        r#"[cut at 65536 of 80000 bytes; read on with {"path":"dir/file.txt","start_line":4096}]"#
    );
    let rest = read(text.clone(), json!({"start_line": 4096})).check();
    assert_eq!(format!("{page}\n{}", rest.output()), text);
}

#[test]
fn following_the_markers_returns_the_whole_file() {
    let text: String = (0..50).map(|number| format!("line {number} ü\n")).collect();
    let (mut whole, mut input) = (String::new(), json!({"limit": 100}));
    for _ in 0..20 {
        let seen = read(text.clone(), input.clone()).check_library(|call| call);
        let Some((page, marker)) = seen.output().rsplit_once('[') else {
            whole.push_str(seen.output());
            break;
        };
        assert!(page.len() <= 100, "{page}");
        whole.push_str(page);
        let next =
            marker.trim_end_matches(']').split_once("with ").expect("it states how to continue").1;
        input = serde_json::from_str(next).expect("it is an input");
    }
    assert_eq!(whole, text);
}

#[test]
fn long_line_is_cut_at_a_character_with_a_marker() {
    let seen = read("ü".repeat(100), json!({"limit": 51})).check();
    let (page, marker) = seen.output().split_once('\n').expect("there is a marker");
    assert_eq!(page, "ü".repeat(25));
    assert!(
        marker.starts_with(
            "[cut at 50 of 200 bytes, inside line 0, which is longer than the limit of 51 bytes;"
        ),
        "{marker}"
    );
}

#[test]
fn binary_file_is_refused_with_its_first_invalid_byte() {
    for (bytes, said) in [
        (&b"ab\0c"[..], "byte 2 is NUL"),
        (b"abc\xff", "byte 3 is not valid UTF-8"),
        (b"\x89PNG\r\n", "byte 0 is not valid UTF-8"),
    ] {
        let seen = read(bytes, json!({})).check();
        assert_eq!(seen.kind(), "failed");
        let message = seen.message("execution_error");
        assert!(
            message.contains("`dir/file.txt` is binary") && message.contains(said),
            "{message}"
        );
    }
}

#[test]
fn non_file_is_refused() {
    let seen = call("read_file", json!({"path": "dir"}))
        .arrange(|world| {
            world.folder("dir");
        })
        .check();
    assert!(
        seen.message("execution_error").contains("is a directory; use list_dir"),
        "{:#}",
        seen.result
    );
    let seen = call("read_file", json!({"path": "none/at/all"})).check();
    assert_eq!(seen.kind(), "not-found");
    assert!(
        seen.message("execution_error").contains("list_dir and find_files"),
        "{:#}",
        seen.result
    );
    let seen = call("read_file", json!({"path": "file/below"}))
        .arrange(|world| {
            world.file("file", "");
        })
        .check();
    let _ = seen.error("execution_error");
}

#[test]
fn inside_link_is_followed_and_outside_link_refused() {
    let inside = call("read_file", json!({"path": "link"})).arrange(|world| {
        world.file("file", "text").link("link", "file");
    });
    assert_eq!(inside.check().output(), "text");
    for to in ["@/secret.txt", "../secret.txt"] {
        let seen = call("read_file", json!({"path": "link"}))
            .arrange(move |world| {
                world.link("link", to);
            })
            .check();
        assert_eq!(seen.error("permission_denied")["detail"]["reason"], "workspace");
    }
}

#[test]
fn absolute_inside_path_is_accepted() {
    let seen = call("read_file", json!({}))
        .arrange(|world| {
            world.file("a/b", "text");
        })
        .input_at(|world| json!({"path": world.root().join("a/b")}))
        .check();
    assert_eq!(seen.output(), "text");
    let outside = call("read_file", json!({}))
        .input_at(|world| json!({"path": world.outer().join("secret.txt")}))
        .check();
    let _ = outside.error("permission_denied");
}
