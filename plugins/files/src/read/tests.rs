//! Tests of `read_file`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use serde_json::{Value, json};
use std::fs;
use tempfile::{TempDir, tempdir};

const FIVE: &str = "zero\none\r\ntwo\n\nfour";

fn holding(content: impl AsRef<[u8]>) -> TempDir {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("f"), content).unwrap();
    directory
}

fn call(directory: &TempDir, input: Value) -> Result<String> {
    let args: Args = serde_json::from_value(input).unwrap();
    read(&Workspace::of(directory.path()), &Request::new(&args)?)
}

/// Returns the text of the lines from `start` to `end` of a file.
fn lines(content: &str, start: u64, end: i64) -> String {
    call(&holding(content), json!({"path": "f", "start_line": start, "end_line": end})).unwrap()
}

fn refused(directory: &TempDir, input: Value) -> String {
    call(directory, input).unwrap_err().to_string()
}

/// Splits an output into its text and the arguments in its marker.
fn page(output: &str) -> (&str, Option<Value>) {
    match output.rsplit_once("[cut at ") {
        Some((text, marker)) => {
            let arguments = marker.rsplit_once(" with ").unwrap().1.strip_suffix(']').unwrap();
            (text, Some(serde_json::from_str(arguments).unwrap()))
        }
        None => (output, None),
    }
}

#[test]
fn whole_file_is_returned_verbatim() {
    for content in [FIVE, "", "\n", "\u{feff}bom", "no end", "\r\r\n\n\r"] {
        assert_eq!(call(&holding(content), json!({"path": "f"})).unwrap(), content);
    }
}

#[test]
fn range_is_zero_based_and_inclusive() {
    assert_eq!(lines(FIVE, 0, 0), "zero\n");
    assert_eq!(lines(FIVE, 1, 2), "one\r\ntwo\n");
    assert_eq!(lines(FIVE, 3, 3), "\n");
    assert_eq!(lines(FIVE, 4, 4), "four");
}

#[test]
fn end_of_minus_one_or_null_is_the_last_line() {
    assert_eq!(lines(FIVE, 0, -1), FIVE);
    assert_eq!(lines(FIVE, 3, -1), "\nfour");
    assert_eq!(call(&holding(FIVE), json!({"path": "f", "start_line": 4})).unwrap(), "four");
    assert_eq!(call(&holding(FIVE), json!({"path": "f", "end_line": 1})).unwrap(), "zero\none\r\n");
}

#[test]
fn end_beyond_the_file_is_the_last_line() {
    assert_eq!(lines(FIVE, 2, 99), "two\n\nfour");
    assert_eq!(lines("", 0, 7), "");
}

#[test]
fn start_beyond_the_file_is_an_error_with_the_count() {
    let said = |content: &str, start: u64| {
        refused(&holding(content), json!({"path": "f", "start_line": start}))
    };
    assert!(
        said(FIVE, 5).ends_with("line 5 is beyond the end of `f`, which has 5 lines, 0 to 4"),
        "{}",
        said(FIVE, 5)
    );
    assert!(said("a\nb\n", 2).ends_with("which has 2 lines, 0 to 1"));
    assert!(said("a\n", 9).ends_with("which has 1 line, line 0"));
    assert!(said("", 1).ends_with("which has no lines"));
}

#[test]
fn end_before_the_start_is_an_error() {
    assert!(
        refused(&holding(FIVE), json!({"path": "f", "start_line": 3, "end_line": 2}))
            .contains("2 is before start_line 3")
    );
    assert!(
        refused(&holding(FIVE), json!({"path": "f", "end_line": -2}))
            .contains("-2 is before start_line 0")
    );
}

#[test]
fn limit_is_at_least_one_byte_and_bounded() {
    for limit in [0, MAX_BYTES + 1] {
        let said = refused(&holding(FIVE), json!({"path": "f", "limit": limit}));
        assert!(said.contains(&format!("{limit} is not between 1 and 4000000 bytes")), "{said}");
    }
}

#[test]
fn large_file_is_cut_at_a_line_with_a_marker() {
    let content: String = (0..40_000).map(|line| format!("line number {line}\n")).collect();
    let directory = holding(&content);
    let first = call(&directory, json!({"path": "f"})).unwrap();
    let marker = first.lines().last().unwrap();
    assert!(
        marker.starts_with(&format!("[cut at 65530 of {} bytes; read on with {{", content.len())),
        "{marker}"
    );

    let (mut read, mut next) = (String::new(), Some(json!({"path": "f"})));
    while let Some(arguments) = next.take() {
        let output = call(&directory, arguments).unwrap();
        let (text, arguments) = page(&output);
        assert!(text.len() <= 64 * 1024 && text.ends_with('\n'));
        read.push_str(text);
        next = arguments;
    }
    assert!(read == content, "the pages together are not the file");
}

#[test]
fn marker_keeps_the_callers_end_and_limit() {
    let output =
        call(&holding(FIVE), json!({"path": "f", "start_line": 1, "end_line": 3, "limit": 8}))
            .unwrap();
    assert_eq!(
        output,
        "one\r\n[cut at 10 of 19 bytes; read on with {\"path\":\"f\",\"start_line\":2,\"end_line\":3,\"limit\":8}]"
    );
}

#[test]
fn sufficient_limit_does_not_cut() {
    assert_eq!(call(&holding(FIVE), json!({"path": "f", "limit": 19})).unwrap(), FIVE);
    assert_eq!(
        call(&holding(FIVE), json!({"path": "f", "start_line": 4, "limit": 4})).unwrap(),
        "four"
    );
    assert_eq!(
        call(&holding(FIVE), json!({"path": "f", "end_line": 1, "limit": 10})).unwrap(),
        "zero\none\r\n"
    );
}

#[test]
fn long_line_is_cut_between_characters_with_a_marker() {
    let output = call(&holding("äöü\nnext"), json!({"path": "f", "limit": 3})).unwrap();
    let (text, next) = page(&output);
    assert_eq!(text, "ä\n");
    assert_eq!(next.unwrap(), json!({"path": "f", "start_line": 1, "limit": 3}));
    assert!(output.contains(
        "[cut at 2 of 11 bytes, inside line 0, which is longer than the limit of 3 bytes; read more of it with"
    ));
    assert!(
        output.contains(r#"{"path":"f","start_line":0,"end_line":0,"limit":4000000}"#),
        "{output}"
    );
}

#[test]
fn line_longer_than_any_limit_can_be_skipped() {
    let directory = holding(format!("{}\nlast", "x".repeat(4_000_001)));
    let output = call(&directory, json!({"path": "f", "limit": MAX_BYTES})).unwrap();
    let (text, next) = page(&output);
    assert_eq!(text.len(), 4_000_001);
    assert!(output.contains("this tool reads no more of it"));
    assert_eq!(call(&directory, next.unwrap()).unwrap(), "last");
}

#[test]
fn binary_file_is_refused_with_the_first_bad_byte() {
    let directory = holding(b"text\nmore\0\n");
    assert!(refused(&directory, json!({"path": "f"})).contains("`f` is binary: byte 9 is NUL"));
    assert!(refused(&directory, json!({"path": "f", "start_line": 1})).contains("byte 9 is NUL"));
    assert_eq!(call(&directory, json!({"path": "f", "end_line": 0})).unwrap(), "text\n");
    assert!(
        refused(&holding(b"ab\xff"), json!({"path": "f"})).contains("byte 2 is not valid UTF-8")
    );
}

#[test]
fn directory_is_refused_with_advice() {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("d")).unwrap();
    assert_eq!(
        refused(&directory, json!({"path": "d"})),
        "`d` is a directory; use list_dir to see what is in it"
    );
}

#[test]
fn missing_file_is_not_found() {
    assert_eq!(
        refused(&tempdir().unwrap(), json!({"path": "a/b"})),
        "`a/b` does not exist; list_dir and find_files show what does"
    );
}
