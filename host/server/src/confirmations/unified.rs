//! A unified diff, bounded in time and length.

use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// The longest text that is compared, in bytes.
pub(super) const COMPARED: usize = 1 << 20;
/// The longest diff that is shown, in bytes.
pub(super) const SHOWN: usize = 64 << 10;
/// The time for a comparison, after which the diff is coarse.
const TIME: Duration = Duration::from_millis(200);
/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// A unified diff.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unified {
    pub(super) text: String,
    /// True if hunks are left out at the end.
    pub(super) truncated: bool,
    /// The numbers of lines, of the whole change.
    pub(super) added: u64,
    pub(super) removed: u64,
}

/// Compares two texts line by line. The names stand in the head.
pub(super) fn unified((old_name, old): (&str, &str), (new_name, new): (&str, &str)) -> Unified {
    // Only a line feed ends a line here, so that no other character can end one of the diff.
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure().timeout(TIME).diff_slices(&old_lines, &new_lines);
    let mut out = Unified {
        text: format!("--- {old_name}\n+++ {new_name}\n"),
        truncated: false,
        added: 0,
        removed: 0,
    };
    for group in diff.grouped_ops(CONTEXT) {
        let header = similar::udiff::UnifiedHunkHeader::new(&group);
        out.push(&format!("{header}\n"), "");
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => " ",
                ChangeTag::Insert => {
                    out.added += 1;
                    "+"
                }
                ChangeTag::Delete => {
                    out.removed += 1;
                    "-"
                }
            };
            out.push(sign, change.value());
        }
    }
    out
}

impl Unified {
    /// Appends a line unless the diff is full.
    fn push(&mut self, sign: &str, line: &str) {
        self.truncated |= self.text.len() + sign.len() + line.len() > SHOWN;
        if self.truncated {
            return;
        }
        self.text.push_str(sign);
        self.text.push_str(line);
        if !line.is_empty() && !line.ends_with('\n') {
            self.text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &str, new: &str) -> Unified {
        unified(("a/f", old), ("b/f", new))
    }

    #[test]
    fn change_is_shown_with_its_surroundings() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let diff = of(old, &old.replace("5\n", "five\n"));
        assert_eq!(
            diff.text,
            "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!((diff.added, diff.removed, diff.truncated), (1, 1, false));
    }

    #[test]
    fn only_a_line_feed_ends_a_line() {
        let diff = of("", "a\r+++ b/other\u{2028}c\u{b}d\u{85}e");
        assert_eq!(
            diff.text,
            "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+a\r+++ b/other\u{2028}c\u{b}d\u{85}e\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn long_diff_is_cut_and_counted_whole() {
        let diff = of("", &"a line of text\n".repeat(60_000));
        assert!(diff.truncated && diff.text.len() <= SHOWN && diff.text.ends_with("text\n"));
        assert_eq!((diff.added, diff.removed), (60_000, 0));
    }

    #[test]
    fn texts_without_anything_in_common_are_compared_in_time() {
        let lines = |word: &str| (0..40_000).map(|n| format!("{word} {n}\n")).collect::<String>();
        let started = std::time::Instant::now();
        let diff = of(&lines("old"), &lines("new"));
        assert_eq!((diff.added, diff.removed), (40_000, 40_000));
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
