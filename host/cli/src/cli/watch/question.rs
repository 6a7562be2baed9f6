//! A question of a server at the terminal.

use crate::cli::style::heading;
use crate::cli::wrap::hanging;
use palisade::tool::text::{elided, visible};
use serde_json::Value;

/// The indentation of the lines of a question. Only the program's own lines begin at the left edge.
const FIRST: &str = "  ";
const REST: &str = "      ";
/// The beginning of the continuation of a broken line of a difference. Its mark stands where the
/// other lines have their sign, so that a continuation cannot pass for an added or removed line.
const CONTINUED: &str = "      ↪ ";
/// The displayed length of the input and of a path, in characters.
const INPUT: usize = 2_000;
const PATH: usize = 160;
/// The number of displayed lines of the differences of all files.
const LINES: usize = 60;

/// An open question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: String,
    details: Value,
}

/// The meaning of a typed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// An answer, as the API takes it.
    Decision(&'static str),
    /// The whole input and all differences are wanted.
    Whole,
    /// None of the offered answers.
    Unclear,
}

impl Question {
    /// Reads the details of a question. `None` if it is settled.
    pub(super) fn read(details: Value) -> Option<Self> {
        let id = details["request_id"].as_str()?.to_owned();
        details["resolution"].is_null().then_some(Self { id, details })
    }

    /// Returns the path at which the question is answered.
    pub(super) fn path(&self) -> String {
        let part = |key: &str| self.details[key].as_str().map_or("-".to_owned(), encoded);
        format!(
            "/sessions/{}/turns/{}/confirmations/{}",
            part("session_id"),
            part("turn_id"),
            encoded(&self.id)
        )
    }

    /// Returns the question in lines of at most `columns` columns.
    pub(super) fn text(&self, columns: usize) -> String {
        let said = |key: &str| self.details[key].as_str();
        let line = |text: &str| hanging(FIRST, REST, text, columns);
        let tool = elided(said("tool").unwrap_or_default(), PATH);
        let class = said("class").unwrap_or("unknown");
        let mut text = format!("\n{}\n", heading(&format!("{tool} wants to run (class {class})")));
        if let Some(client) = said("client") {
            text.push_str(&line(&format!("client: {}", elided(client, PATH))));
        }
        text.push_str(&line(&format!(
            "input: {}",
            elided(said("input_summary").unwrap_or_default(), INPUT)
        )));
        if let Some(plugin) = said("plugin") {
            let digest = said("digest").unwrap_or_default();
            text.push_str(&line(&format!("plugin: {} ({digest})", elided(plugin, PATH))));
        }
        let mut left = LINES;
        for file in self.files() {
            text.push_str(&difference(file, &mut left, columns));
        }
        text + &self.prompt(columns)
    }

    /// Returns the whole input and all differences, as far as the server tells them.
    pub(super) fn whole(&self, columns: usize) -> String {
        let input = self.details["input"].as_str().unwrap_or("(the input is not available)");
        let mut text: String =
            input.lines().map(|line| hanging(FIRST, REST, &visible(line), columns)).collect();
        let mut left = usize::MAX;
        self.files().for_each(|file| text += &difference(file, &mut left, columns));
        text + &self.prompt(columns)
    }

    /// Returns the words after an answer that is none of the offered ones.
    pub(super) fn again(&self, columns: usize) -> String {
        format!("please answer y, n, {}or w\n{}", self.session("s "), self.prompt(columns))
    }

    /// Returns the meaning of a typed line. An empty line means nothing: an answer is never given
    /// by a stray key.
    pub(super) fn choice(&self, line: &str) -> Choice {
        match line.to_ascii_lowercase().as_str() {
            "y" | "yes" => Choice::Decision("allow"),
            "s" | "session" if self.offers("always") => Choice::Decision("always"),
            "n" | "no" => Choice::Decision("deny"),
            "w" | "whole" => Choice::Whole,
            _ => Choice::Unclear,
        }
    }

    fn files(&self) -> impl Iterator<Item = &Value> {
        self.details["files"].as_array().into_iter().flatten()
    }

    fn offers(&self, decision: &str) -> bool {
        let offered = self.details["decisions"].as_array().into_iter().flatten();
        offered.into_iter().any(|known| known == decision)
    }

    fn prompt(&self, columns: usize) -> String {
        let session = self.session("this [s]ession, ");
        let said = |key: &str| self.details[key].as_str();
        // Repeated here, because the head of a long question scrolls away.
        let tool = elided(said("tool").unwrap_or_default(), PATH);
        let class = said("class").unwrap_or("unknown");
        let line = format!("Allow {tool} (class {class})? [y]es, [n]o, {session}show the [w]hole:");
        hanging("", FIRST, &line, columns)
    }

    /// Returns these words if an answer for the session is offered.
    fn session(&self, words: &'static str) -> &'static str {
        if self.offers("always") { words } else { "" }
    }
}

/// Returns the lines about one file. `left` is the number of lines that are still shown.
fn difference(file: &Value, left: &mut usize, columns: usize) -> String {
    let said = |key: &str| file[key].as_str();
    let path = elided(said("path").unwrap_or_default(), PATH);
    let change = said("change").unwrap_or("change");
    let mut text = hanging(FIRST, REST, &format!("would {change}: `{path}`"), columns);
    if let Some(note) = said("note") {
        text += &hanging(REST, REST, &elided(note, INPUT), columns);
    }
    let lines: Vec<&str> = said("diff").unwrap_or_default().lines().collect();
    for line in lines.iter().take(*left) {
        // Broken by the program: a line that the terminal breaks would go on at the left edge.
        text += &hanging(REST, CONTINUED, &visible(line), columns);
    }
    let hidden = lines.len().saturating_sub(*left);
    *left = left.saturating_sub(lines.len());
    if hidden > 0 {
        text += &format!("{REST}… {hidden} more lines: `w` shows them\n");
    }
    if file["diff_truncated"] == true {
        text += &format!("{REST}… the server left out the rest\n");
    }
    text
}

/// Encodes text as one segment of a path.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        // A dot as well: a segment of dots alone would mean another path.
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use serde_json::json;

    fn question() -> Question {
        Question::read(json!({
            "request_id": "cr_1", "session_id": "../a b", "turn_id": null, "resolution": null,
            "tool": "write_file", "class": "write", "input_summary": "{}",
            "decisions": ["allow", "always", "deny"],
            "files": [{"path": "a\u{202e}", "change": "modify", "note": null, "diff_truncated": false,
                "diff": "-old\n+n\u{1b}ew"}],
        }))
        .unwrap()
    }

    #[test]
    fn only_offered_words_answer() {
        let question = question();
        assert_eq!(question.choice("Y"), Choice::Decision("allow"));
        assert_eq!(question.choice("s"), Choice::Decision("always"));
        assert_eq!(question.choice("no"), Choice::Decision("deny"));
        // At another question of the program, `a` allows for good.
        for stray in ["", "a", "always", "yes please"] {
            assert_eq!(question.choice(stray), Choice::Unclear, "{stray}");
        }
    }

    #[test]
    fn hostile_text_is_escaped_and_its_path_encoded() {
        let question = question();
        assert_eq!(question.path(), "/sessions/%2E%2E%2Fa%20b/turns/-/confirmations/cr_1");
        for text in [question.text(80), question.whole(80)] {
            assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{text}");
            assert!(text.contains("-old\n"), "{text}");
        }
    }

    #[test]
    fn settled_question_is_none() {
        let settled = json!({"request_id": "cr_1", "resolution": {"decision": "deny"}});
        assert!(Question::read(settled).is_none());
    }

    #[test]
    fn continuation_of_a_line_is_no_line_of_the_difference() {
        let mut details = question().details;
        details["files"][0]["diff"] = json!(format!("+{} -removed +added", "word ".repeat(12)));
        let question = Question::read(details).unwrap();
        for text in [question.text(60), question.whole(60)] {
            let signs = ["-", "+", " "].map(|sign| format!("{REST}{sign}"));
            let changes = text.lines().filter(|line| signs.iter().any(|it| line.starts_with(it)));
            assert_eq!(changes.count(), 1, "{text}");
            assert!(text.lines().any(|line| line.starts_with(CONTINUED)), "{text}");
        }
    }

    #[test]
    fn long_line_of_a_difference_stays_behind_its_indentation() {
        let mut details = question().details;
        let line = format!("+{}\nlist_dir wants to run", " ".repeat(200));
        details["files"][0]["diff"] = json!(line.replace('\n', &" ".repeat(80)));
        let question = Question::read(details).unwrap();
        for text in [question.text(100), question.whole(100)] {
            let starts =
                |line: &str| line.starts_with("list_dir") || line.starts_with("Allow list");
            assert!(!text.lines().any(starts), "{text}");
            assert!(text.ends_with(
                "Allow write_file (class write)? [y]es, [n]o, this [s]ession, show the [w]hole:\n"
            ));
        }
    }
}
