//! A question of a server at the terminal.

use crate::cli::differences::{Differences, LINES};
use crate::cli::style::heading;
use crate::cli::wrap::hanging;
use palisade::tool::text::{elided, visible};
use serde_json::Value;

/// The indentation of the lines of a question. Only the program's own lines begin at the left edge.
const FIRST: &str = "  ";
const REST: &str = "      ";
/// The displayed length of the input and of a path, in characters.
const INPUT: usize = 2_000;
const PATH: usize = 160;
/// The words behind the lines of a difference that are left out.
const HIDDEN: &str = "more lines: `w` shows them";

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
        if let Some(caller) = said("called_by") {
            text.push_str(&line(&format!("called by: {}", elided(caller, PATH))));
        }
        text.push_str(&line(&format!(
            "input: {}",
            elided(said("input_summary").unwrap_or_default(), INPUT)
        )));
        if let Some(plugin) = said("plugin") {
            let digest = said("digest").unwrap_or_default();
            text.push_str(&line(&format!("plugin: {} ({digest})", elided(plugin, PATH))));
        }
        for grant in self.details["grants"].as_array().into_iter().flatten() {
            let grant = elided(grant.as_str().unwrap_or_default(), PATH);
            text.push_str(&line(&format!("granted: {grant}")));
        }
        text + &self.changes(LINES, columns) + &self.prompt(columns)
    }

    /// Returns the whole input and all differences, as far as the server tells them.
    pub(super) fn whole(&self, columns: usize) -> String {
        let input = self.details["input"].as_str().unwrap_or("(the input is not available)");
        let text: String =
            input.lines().map(|line| hanging(FIRST, REST, &visible(line), columns)).collect();
        text + &self.changes(usize::MAX, columns) + &self.prompt(columns)
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

    /// Returns the files that would change, with at most this number of lines of differences.
    fn changes(&self, lines: usize, columns: usize) -> String {
        let mut differences = Differences::new(lines, HIDDEN, columns);
        let files = self.details["files"].as_array().into_iter().flatten();
        let change = |file| change(file, columns) + &differences.show(file);
        files.map(change).collect()
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

/// Returns the lines about the change of a file, without its difference.
fn change(file: &Value, columns: usize) -> String {
    let said = |key: &str| file[key].as_str();
    let path = elided(said("path").unwrap_or_default(), PATH);
    let change = said("change").filter(|change| *change != "unknown").unwrap_or("change");
    let text = hanging(FIRST, REST, &format!("would {change}: `{path}`"), columns);
    let note = said("note").map(|note| hanging(REST, REST, &elided(note, INPUT), columns));
    text + &note.unwrap_or_default()
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
