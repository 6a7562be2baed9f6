//! Tests of `search_files`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::collector::COUNT;
use super::*;
use palisade_guest::testing;
use serde_json::json;
use std::fs;
use tempfile::{TempDir, tempdir};

fn holding(files: &[(&str, &[u8])]) -> TempDir {
    let directory = tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

fn found_in(directory: &TempDir, path: &str, pattern: &str, context: usize) -> Result<String> {
    let output = search(
        &Tree::of(directory.path(), Path::new(path)),
        pattern,
        context,
        &testing::context(),
    )?;
    // The note occurs exactly once if there are matches.
    let expected = usize::from(!output.starts_with("[no line matches"));
    assert_eq!(output.matches(COUNT).count(), expected, "{output}");
    Ok(output.replace(COUNT, ""))
}

fn found(directory: &TempDir, pattern: &str) -> String {
    found_in(directory, "", pattern, 0).unwrap()
}

fn refused(pattern: &str) -> String {
    found_in(&holding(&[]), "", pattern, 0).unwrap_err().to_string()
}

#[test]
fn matches_are_sorted_with_zero_based_lines() {
    let directory =
        holding(&[("b", b"one\ntwo one"), ("a/x", b"\n\none\n"), ("c", b"none? no: on")]);
    assert_eq!(found(&directory, "one\\b"), "a/x:2:one\nb:0:one\nb:1:two one\nc:0:none? no: on\n");
    assert_eq!(found(&directory, "^one$"), "a/x:2:one\nb:0:one\n");
}

#[test]
fn line_feed_in_a_name_is_escaped() {
    let directory = holding(&[("a\nsecret:0:x", b"one")]);
    assert_eq!(found(&directory, "one"), "a\\nsecret:0:x:0:one\n");
}

#[test]
fn single_directory_or_file_can_be_searched() {
    let directory = holding(&[("a/x", b"one"), ("b", b"one"), (".gitignore", b"b")]);
    assert_eq!(found_in(&directory, "a", "one", 0).unwrap(), "a/x:0:one\n");
    assert_eq!(found_in(&directory, "b", "one", 0).unwrap(), "b:0:one\n");
    assert!(
        found_in(&directory, "d", "one", 0)
            .unwrap_err()
            .to_string()
            .starts_with("`d` does not exist")
    );
}

#[test]
fn context_lines_are_marked_and_groups_separated() {
    let directory = holding(&[("a", b"1\nx\n3\n4\n5\nx\n"), ("b", b"x\n")]);
    assert_eq!(
        found_in(&directory, "", "x", 1).unwrap(),
        "a-0-1\na:1:x\na-2-3\n--\na-4-5\na:5:x\n--\nb:0:x\n"
    );
    assert_eq!(
        found_in(&directory, "a", "x", 2).unwrap(),
        "a-0-1\na:1:x\na-2-3\na-3-4\na-4-5\na:5:x\n"
    );
    assert!(
        found_in(&directory, "", "x", 21)
            .unwrap_err()
            .to_string()
            .contains("21 is more than 20 lines")
    );
}

#[test]
fn crlf_is_a_line_ending() {
    assert_eq!(found(&holding(&[("a", b"one\r\ntwo\r\n")]), "(one|two)$"), "a:0:one\na:1:two\n");
}

#[test]
fn search_is_case_sensitive_by_default() {
    let directory = holding(&[("a", "Straße\nSTRASSE\nÄ\n".as_bytes())]);
    assert_eq!(
        found(&directory, "straße|ä"),
        "[no line matches `straße|ä` below `.`; 1 files were searched, ignored ones left out, 0 of them binary]\n"
    );
    assert_eq!(found(&directory, "(?i)straße|ä"), "a:0:Straße\na:2:Ä\n");
}

#[test]
fn binary_files_are_skipped() {
    let late = [b"one\n", b"text\n".repeat(50_000).as_slice(), b"\0"].concat();
    let directory =
        holding(&[("a", b"\0one"), ("b", &late), ("c", b"one"), ("latin1", b"one \xe9")]);
    assert_eq!(found(&directory, "^one"), "c:0:one\nlatin1:0:one \u{fffd}\n");
    assert!(
        found(&directory, "two")
            .contains("4 files were searched, ignored ones left out, 2 of them binary")
    );
}

#[test]
fn more_than_two_hundred_matches_are_cut_with_a_marker() {
    let directory =
        holding(&[("a", "x\n".repeat(150).as_bytes()), ("b", "x\n".repeat(50).as_bytes())]);
    assert_eq!(found(&directory, "x").lines().count(), 200);
    fs::write(directory.path().join("c"), "before\nx\n").unwrap();
    let output = found_in(&directory, "", "x", 1).unwrap();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 202, "200 matches, a separator and the marker");
    assert_eq!(lines.get(200), Some(&"b:49:x"));
    assert_eq!(
        lines.last(),
        Some(
            &"[200 matches in 2 files shown, and there are more; narrow the pattern, or give a path]"
        )
    );
}

#[test]
fn context_of_omitted_matches_is_omitted() {
    let directory = holding(&[("a", "x\nafter\n3\n4\nbefore\n".repeat(201).as_bytes())]);
    let output = found_in(&directory, "", "x", 1).unwrap();
    let lines: Vec<_> = output.lines().rev().take(3).collect();
    let marker =
        "[200 matches in 1 files shown, and there are more; narrow the pattern, or give a path]";
    assert_eq!(lines, [marker, "a-996-after", "a:995:x"]);
}

#[test]
fn output_is_cut_at_a_line_before_its_limit() {
    let line = format!("{}\n", "y".repeat(499));
    let content = format!("{}x\n", line.repeat(19)).repeat(100);
    let output = found_in(&holding(&[("a", content.as_bytes())]), "", "x", 19).unwrap();
    let (lines, marker) = output.trim_end().rsplit_once('\n').unwrap();
    assert!(lines.len() <= 256 * 1024 && lines.len() > 250 * 1024, "{}", lines.len());
    assert!(
        marker.starts_with("[cut at 262144 bytes, after 27 matches in 1 files; narrow"),
        "{marker}"
    );
}

#[test]
fn long_lines_are_cut_around_the_match() {
    let content = format!("{}needle{}\n", "a".repeat(100_000), "b".repeat(100_000));
    let output = found(&holding(&[("a", content.as_bytes())]), "needle");
    assert!(output.len() < 600 && output.contains("aneedleb"), "{output}");
}

#[test]
fn overlong_line_is_named_and_the_search_continues() {
    let long = b"x".repeat(MAX_LINE_BYTES + 1);
    let output = found(&holding(&[("a", &long), ("b", b"x")]), "x");
    assert!(
        output.starts_with("b:0:x\n[1 entry could not be read: `a`: configured allocation limit"),
        "{output}"
    );
}

#[test]
fn invalid_pattern_is_refused_with_the_compilers_error() {
    assert!(refused("(a").contains("unclosed group"), "{}", refused("(a"));
    assert!(refused("a(?=b)").contains("look-around"));
    assert!(refused("a\\nb").contains("line by line"), "{}", refused("a\\nb"));
    assert!(refused("").contains("it is empty"));
}

#[test]
fn pattern_size_is_bounded() {
    assert!(refused(&"a".repeat(4_097)).contains("4097 bytes long, and 4096 is the most"));
    assert!(refused(&format!("{}a{}", "(".repeat(100), ")".repeat(100))).contains("nest"));
    let said = refused("(\\w{50}){20}");
    assert!(said.contains("exceeds size limit of 12582912"), "{said}");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let directory = holding(&[("a", b"one")]);
    std::os::unix::fs::symlink("a", directory.path().join("b")).unwrap();
    assert_eq!(found(&directory, "one"), "a:0:one\n");
}

#[test]
fn search_honors_cancellation_and_reports_progress() {
    let directory = tempdir().unwrap();
    (0..600).for_each(|number| fs::write(directory.path().join(number.to_string()), "").unwrap());
    let input = json!({"pattern": "x", "path": directory.path()});
    let ctx = testing::context();
    let _ = testing::call_with::<search_files>(input.clone(), &ctx).unwrap();
    let done: Vec<_> = ctx.record().progress.iter().map(|progress| progress.done).collect();
    assert_eq!(done, [256.0, 512.0]);
    let stopped =
        testing::call_with::<search_files>(input, &testing::context().cancelled_after(300));
    assert_eq!(stopped, Err(Error::cancelled()));
}
