//! The text of a question, and the meaning of an answer.

use super::standing_rule::StandingRule;
use crate::cli::wrap::hanging;
use palisade::confirm::ConfirmationRequest;
use palisade::tool::text::elided;
use std::io::{self, Read};
use std::time::{Duration, SystemTime};

/// Maximum number of listed paths, and maximum length of each, in characters.
const MAX_PATHS: usize = 10;
const MAX_PATH: usize = 160;
/// Maximum length of a plugin's name, in characters: a file name is arbitrary text.
const MAX_PLUGIN: usize = 80;
/// Maximum length of an answer, in bytes. A longer line is none of the offered answers.
const MAX_ANSWER: usize = 64;
/// The indentation of the lines of a question, and of their continuation. Only the program's own
/// question begins at the left edge, so that quoted text cannot imitate it.
const FIRST: &str = "  ";
const REST: &str = "      ";

/// An answer to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// This call may run.
    Yes,
    /// This call must not run.
    No,
    /// The tool may run until the program ends.
    Session,
    /// The tool may run from now on, by a rule in the user's own file.
    Always,
}

/// The meaning of a typed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Reply(Reply),
    /// None of the offered answers.
    Unclear,
}

/// Reads one line. `offers_rule` says whether *always* was offered.
pub(super) fn read(input: &mut impl Read, offers_rule: bool) -> io::Result<Reading> {
    // A terminal in canonical mode returns one line per read.
    let mut line = [0; MAX_ANSWER];
    let length = input.read(&mut line)?;
    Ok(meaning(line.get(..length).unwrap_or_default(), offers_rule))
}

/// Returns the meaning of a line. The end of the input and an empty line deny. A line without its
/// end is too long, or ends the input after a word.
fn meaning(line: &[u8], offers_rule: bool) -> Reading {
    if line.is_empty() {
        return Reading::Reply(Reply::No);
    }
    let text = std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n'));
    let Some(text) = text else { return Reading::Unclear };
    Reading::Reply(match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Reply::Yes,
        "" | "n" | "no" => Reply::No,
        "s" | "session" => Reply::Session,
        "a" | "always" if offers_rule => Reply::Always,
        _ => return Reading::Unclear,
    })
}

/// Returns the question in lines of at most `columns` columns.
pub(super) fn question(
    request: &ConfirmationRequest,
    rule: Option<&StandingRule>,
    columns: usize,
) -> String {
    let line = |text: &str| hanging(FIRST, REST, text, columns);
    let subject = format!("{} wants to run (class {})", request.tool, request.side_effects);
    let mut text = format!("\n{}", hanging("", REST, &subject, columns));
    text.push_str(&line(&format!("input: {}", request.input_summary)));
    for path in request.projected_modifications.iter().take(MAX_PATHS) {
        // On one line and quoted: a path is text of the model and could otherwise imitate the
        // question.
        text.push_str(&line(&format!("would change: `{}`", elided(path, MAX_PATH))));
    }
    let more = request.projected_modifications.len().saturating_sub(MAX_PATHS);
    if more > 0 {
        text.push_str(&line(&format!("and {more} more")));
    }
    if let (Some(plugin), Some(digest)) = (&request.plugin, &request.digest) {
        text.push_str(&line(&format!("plugin: {} ({digest})", elided(plugin, MAX_PLUGIN))));
    }
    // The time left, because earlier questions may have used up some of it.
    let left = request.expires.duration_since(SystemTime::now()).unwrap_or_default();
    let time = humantime::format_duration(Duration::from_secs(left.as_secs().max(1)));
    text.push_str(&line(&format!("without an answer it is refused after {time}")));
    text.push_str(&line("`s` allows this tool until palisade ends"));
    if let Some(rule) = rule {
        text.push_str(&line(&format!(
            "`a` allows it in later runs, too, and in every workspace: it {rule}"
        )));
    }
    text + offered(rule.is_some())
}

/// Returns the words after an answer that is none of the offered ones.
pub(super) fn again(offers_rule: bool) -> String {
    let words = if offers_rule { "y, n, s or a" } else { "y, n or s" };
    format!("please answer {words}\n{}", offered(offers_rule))
}

fn offered(offers_rule: bool) -> &'static str {
    if offers_rule {
        "Allow this call? [y]es, [N]o, [s]ession, [a]lways here: "
    } else {
        "Allow this call? [y]es, [N]o, [s]ession: "
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_offered_answer_is_an_answer() {
        let is = |line: &str, reply| {
            assert_eq!(meaning(line.as_bytes(), true), Reading::Reply(reply), "{line:?}");
        };
        ["y\n", "Yes\n", " y \r\n"].into_iter().for_each(|line| is(line, Reply::Yes));
        ["", "\n", "n\n", " NO \n"].into_iter().for_each(|line| is(line, Reply::No));
        ["s\n", "Session\n"].into_iter().for_each(|line| is(line, Reply::Session));
        ["a\n", "ALWAYS\n"].into_iter().for_each(|line| is(line, Reply::Always));
        for line in ["y", "always", "yy\n", "yes please\n", "\u{7f}y\n", "д\n"] {
            assert_eq!(meaning(line.as_bytes(), true), Reading::Unclear, "{line:?}");
        }
        assert_eq!(meaning(b"\xffy\n", true), Reading::Unclear);
        assert_eq!(meaning(b"a\n", false), Reading::Unclear, "no rule was offered");
    }
}
