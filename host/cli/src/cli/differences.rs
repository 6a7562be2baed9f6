//! The differences of files in a question at the terminal.

use super::wrap::hanging;
use palisade::tool::text::visible;
use serde_json::Value;

/// The number of displayed lines of the differences of all files of a question.
pub(super) const LINES: usize = 60;
/// The indentation of each line. Only the program's own lines begin at the left edge.
const INDENTED: &str = "      ";
/// The beginning of the continuation of a broken line. Its mark stands where the other lines have
/// their sign, so that a continuation cannot pass for an added or removed line.
const CONTINUED: &str = "      ↪ ";

/// The differences of the files of a question, within a number of lines.
#[derive(Debug)]
pub(super) struct Differences {
    left: usize,
    /// The words behind the number of lines that are left out.
    hidden: &'static str,
    columns: usize,
}

impl Differences {
    /// Creates differences of together at most `lines` lines, each of at most `columns` columns.
    pub(super) fn new(lines: usize, hidden: &'static str, columns: usize) -> Self {
        Self { left: lines, hidden, columns }
    }

    /// Returns the lines of the difference of a file, as the API describes it.
    pub(super) fn show(&mut self, file: &Value) -> String {
        let diff = file["diff"].as_str().unwrap_or_default();
        // Not `lines`, which hides a carriage return.
        let lines: Vec<&str> = diff.split_terminator('\n').collect();
        let mut text = String::new();
        for line in lines.iter().take(self.left) {
            // Broken by the program: a line that the terminal breaks would go on at the left edge.
            text += &hanging(INDENTED, CONTINUED, &visible(line), self.columns);
        }
        let hidden = lines.len().saturating_sub(self.left);
        self.left = self.left.saturating_sub(lines.len());
        if hidden > 0 {
            text +=
                &hanging(INDENTED, INDENTED, &format!("… {hidden} {}", self.hidden), self.columns);
        }
        if file["diff_truncated"] == true {
            text += &hanging(INDENTED, INDENTED, "… the rest is too long to show", self.columns);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn carriage_return_is_shown() {
        let file = json!({"diff": "-one\n+one\r\n"});
        let text = Differences::new(LINES, "", 60).show(&file);
        assert_eq!(text, format!("{INDENTED}-one\n{INDENTED}+one\\u{{d}}\n"));
    }

    #[test]
    fn continuation_of_a_line_is_no_line_of_the_difference() {
        let file = json!({"diff": format!("+{} -removed +added", "word ".repeat(12))});
        let text = Differences::new(LINES, "", 60).show(&file);
        let signs = ["-", "+", " "].map(|sign| format!("{INDENTED}{sign}"));
        let changes = text.lines().filter(|line| signs.iter().any(|it| line.starts_with(it)));
        assert_eq!(changes.count(), 1, "{text}");
        assert!(text.lines().any(|line| line.starts_with(CONTINUED)), "{text}");
    }

    #[test]
    fn lines_above_the_limit_are_counted() {
        let file = json!({"diff": "+a\n+b\n+c", "diff_truncated": true});
        let mut differences = Differences::new(4, "more lines", 80);
        assert!(differences.show(&file).contains("+c"));
        let text = differences.show(&file);
        assert!(text.contains("+a") && !text.contains("+b"), "{text}");
        assert!(text.contains("… 2 more lines\n") && text.contains("too long"), "{text}");
    }

    #[test]
    fn hostile_text_is_escaped() {
        let text = Differences::new(LINES, "", 80).show(&json!({"diff": "+n\u{1b}ew\u{202e}"}));
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
}
