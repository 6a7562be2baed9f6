//! The diff of one replacement, in the unified format.

use palisade_guest::visible;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{ChangeTag, DiffOp, group_diff_ops};
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Context lines around a change, as is usual for diffs.
const CONTEXT: usize = 3;

/// Time limit for the search for a minimal diff; then a larger one is accepted. Two long texts
/// without a common line would take minutes.
const PATIENCE: Duration = Duration::from_millis(300);

/// Maximum size of a shown diff, in bytes: the author of a larger change need not read it again.
const MAX_BYTES: usize = 64 * 1024;

/// Returns the diff from `before` to `after`, which differ only in the bytes `replaced` of
/// `before`.
///
/// Only compares the lines around the replacement, so that the cost depends on the change and not
/// on the file.
pub(crate) fn unified(path: &Path, before: &str, after: &str, replaced: Range<usize>) -> String {
    let start = lines_back(before, replaced.start, CONTEXT);
    let end = lines_on(before, replaced.end, CONTEXT);
    let old = before.get(start..end).unwrap_or(before);
    let new = after
        .get(start..after.len().saturating_sub(before.len().saturating_sub(end)))
        .unwrap_or(after);
    let first =
        before.get(..start).map_or(0, |above| above.bytes().filter(|byte| *byte == b'\n').count());

    let old: Vec<_> = old.split_inclusive('\n').collect();
    let new: Vec<_> = new.split_inclusive('\n').collect();
    let path = visible(&path.to_string_lossy());
    let mut text = format!("--- a/{path}\n+++ b/{path}\n");
    for group in group_diff_ops(compare(&old, &new), CONTEXT) {
        hunk(&mut text, &old, &new, &group, first);
    }
    cut(text)
}

/// Compares two texts by lines. Calls one algorithm directly, because all of them together would
/// make up half of this plugin.
fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let deadline = Instant::now().checked_add(PATIENCE);
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    match myers::diff_deadline_raw(&mut hook, old, 0..old.len(), new, 0..new.len(), deadline) {
        Ok(()) => hook.into_inner().into_inner().into_ops(),
        Err(never) => match never {},
    }
}

/// Returns the start of the line that is `count` lines above that of byte `at`.
fn lines_back(text: &str, at: usize, count: usize) -> usize {
    let above = text.get(..at).unwrap_or(text);
    above.rmatch_indices('\n').nth(count).map_or(0, |(end, _)| end.saturating_add(1))
}

/// Returns the end of the line that is `count` lines below that of byte `at`, or below the previous
/// line if `at` is its end.
fn lines_on(text: &str, at: usize, count: usize) -> usize {
    let below = text.get(at..).unwrap_or("");
    below
        .match_indices('\n')
        .nth(count)
        .map_or(text.len(), |(end, _)| at.saturating_add(end).saturating_add(1))
}

fn hunk(text: &mut String, old_lines: &[&str], new_lines: &[&str], group: &[DiffOp], first: usize) {
    let (Some(head), Some(tail)) = (group.first(), group.last()) else { return };
    let old = place(head.old_range().start, tail.old_range().end, first);
    let new = place(head.new_range().start, tail.new_range().end, first);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "@@ -{old} +{new} @@");
    for change in group.iter().flat_map(|op| op.iter_changes(old_lines, new_lines)) {
        text.push(match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        });
        text.push_str(change.value());
        if !change.value().ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Formats the position of a hunk: the first line, counted from 1, and the number of lines. An
/// empty hunk names the line above.
fn place(start: usize, end: usize, first: usize) -> String {
    let (start, count) = (start.saturating_add(first), end.saturating_sub(start));
    match count {
        0 => format!("{start},0"),
        1 => format!("{}", start.saturating_add(1)),
        _ => format!("{},{count}", start.saturating_add(1)),
    }
}

fn cut(mut text: String) -> String {
    let len = text.len();
    if len > MAX_BYTES {
        let end = text.floor_char_boundary(MAX_BYTES);
        let end = text
            .get(..end)
            .and_then(|kept| kept.rfind('\n'))
            .map_or(end, |end| end.saturating_add(1));
        text.truncate(end);
        let _ = write!(
            text,
            "[diff cut at {end} of {len} bytes; the file is changed as asked, and read_file shows all of it]"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    /// Returns the diff of replacing `old`, which occurs once, by `new`, without the header.
    fn hunks(before: &str, old: &str, new: &str) -> String {
        let at = before.find(old).unwrap();
        let diff =
            unified(Path::new("d/f"), before, &before.replacen(old, new, 1), at..at + old.len());
        diff.strip_prefix("--- a/d/f\n+++ b/d/f\n").unwrap().to_owned()
    }

    fn numbered(count: usize) -> String {
        (1..=count).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn change_in_the_middle_has_three_context_lines() {
        let wanted =
            "@@ -497,7 +497,8 @@\n 497\n 498\n 499\n-500\n+five\n+hundred\n 501\n 502\n 503\n";
        assert_eq!(hunks(&numbered(1_000), "500", "five\nhundred"), wanted);
    }

    #[test]
    fn change_at_an_end_has_less_context() {
        assert_eq!(hunks("a\nb\n", "a\n", "x\n"), "@@ -1,2 +1,2 @@\n-a\n+x\n b\n");
        assert_eq!(
            hunks("a\nb", "b", "x"),
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+x\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn inserting_or_removing_lines_affects_no_other_line() {
        assert_eq!(hunks("a\nb\nc\n", "b\n", ""), "@@ -1,3 +1,2 @@\n a\n-b\n c\n");
        assert_eq!(hunks("a\nc\n", "a\n", "a\nb\n"), "@@ -1,2 +1,3 @@\n a\n+b\n c\n");
        assert_eq!(hunks("a\n", "a\n", ""), "@@ -1 +0,0 @@\n-a\n");
    }

    #[test]
    fn joined_lines_are_both_shown() {
        assert_eq!(hunks("a\nb\nc\n", "\nb", "b"), "@@ -1,3 +1,2 @@\n-a\n-b\n+ab\n c\n");
    }

    #[test]
    fn line_endings_are_kept() {
        assert_eq!(hunks("a\r\nb\r\n", "b", "x"), "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+x\r\n");
    }

    #[test]
    fn unchanged_part_of_a_replacement_is_not_shown() {
        let (old, new) = (numbered(30), numbered(30).replace("15\n", "fifteen\n"));
        assert_eq!(
            hunks(&old, &old, &new),
            "@@ -12,7 +12,7 @@\n 12\n 13\n 14\n-15\n+fifteen\n 16\n 17\n 18\n"
        );
    }

    #[test]
    fn long_diff_is_cut_at_a_line_with_a_marker() {
        let diff = hunks("a\n", "a", &"line\n".repeat(100_000));
        let (shown, marker) = diff.rsplit_once('\n').unwrap();
        assert!(shown.ends_with("+line") && diff.len() < MAX_BYTES + 200);
        assert!(
            marker.starts_with("[diff cut at ") && marker.ends_with("read_file shows all of it]"),
            "{marker}"
        );
    }
}
