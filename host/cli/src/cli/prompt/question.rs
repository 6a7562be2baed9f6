//! The text of a question, and the meaning of an answer.

use super::standing_rule::StandingRule;
use crate::cli::differences::{Differences, LINES};
use crate::cli::wrap::hanging;
use palisade::confirm::ConfirmationRequest;
use palisade::tool::text::elided;
use serde_json::Value;
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

/// The answers that a question offers besides yes and no: those that have an effect.
#[derive(Debug, Default)]
pub(super) struct Offers {
    pub(super) later_calls: LaterCalls,
    /// The rule that the answer *always* writes, if one may be written.
    pub(super) rule: Option<StandingRule>,
}

/// Whether this run may call the tool again, so that the answer *session* has an effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LaterCalls {
    Possible,
    #[default]
    None,
}

impl Offers {
    fn session(&self) -> bool {
        self.later_calls == LaterCalls::Possible
    }

    /// Returns the words after an answer that is none of the offered ones.
    pub(super) fn again(&self, columns: usize) -> String {
        let words = match (self.session(), self.rule.is_some()) {
            (true, true) => "y, n, s or a",
            (true, false) => "y, n or s",
            (false, true) => "y, n or a",
            (false, false) => "y or n",
        };
        let words = hanging("", REST, &format!("please answer {words}"), columns);
        format!("{words}{}", self.prompt(columns))
    }

    /// Returns the end of the question, behind which the answer is typed.
    fn prompt(&self, columns: usize) -> String {
        let session = if self.session() { ", [s]ession" } else { "" };
        let always = if self.rule.is_some() { ", [a]lways, everywhere" } else { "" };
        let prompt = format!("Allow this call? [y]es, [N]o{session}{always}:");
        hanging("", REST, &prompt, columns.saturating_sub(1)).trim_end().to_owned() + " "
    }
}

/// The meaning of a typed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Reply(Reply),
    /// None of the offered answers.
    Unclear,
    /// The end of the input.
    End,
}

/// Reads one line.
pub(super) fn read(input: &mut impl Read, offers: &Offers) -> io::Result<Reading> {
    // A terminal in canonical mode returns one line per read.
    let mut line = [0; MAX_ANSWER];
    let length = input.read(&mut line)?;
    Ok(meaning(line.get(..length).unwrap_or_default(), offers))
}

/// Returns the meaning of a line. An empty line denies. A line without its end is too long, or ends
/// the input after a word.
fn meaning(line: &[u8], offers: &Offers) -> Reading {
    if line.is_empty() {
        return Reading::End;
    }
    let text = std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n'));
    let Some(text) = text else { return Reading::Unclear };
    Reading::Reply(match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Reply::Yes,
        "" | "n" | "no" => Reply::No,
        "s" | "session" if offers.session() => Reply::Session,
        "a" | "always" if offers.rule.is_some() => Reply::Always,
        _ => return Reading::Unclear,
    })
}

/// Returns the question in lines of at most `columns` columns. `changes` describes the files that
/// the call would change.
pub(super) fn question(
    request: &ConfirmationRequest,
    changes: &[Value],
    offers: &Offers,
    columns: usize,
) -> String {
    let line = |text: &str| hanging(FIRST, REST, text, columns);
    let mut differences = Differences::new(LINES, "more lines", columns);
    let subject = format!("{} wants to run (class {})", request.tool, request.side_effects);
    let mut text = format!("\n{}", hanging("", REST, &subject, columns));
    if let Some(caller) = &request.called_by {
        text.push_str(&line(&format!("called by: {}", elided(&caller.to_string(), MAX_PATH))));
    }
    text.push_str(&line(&format!("input: {}", request.input_summary)));
    for path in request.projected_modifications.iter().take(MAX_PATHS) {
        // On one line and quoted: a path is text of the model and could otherwise imitate the
        // question.
        text.push_str(&line(&format!("would change: `{}`", elided(path, MAX_PATH))));
        let file = changes.iter().find(|file| file["path"] == **path);
        text.push_str(&file.map(|file| differences.show(file)).unwrap_or_default());
    }
    let more = request.projected_modifications.len().saturating_sub(MAX_PATHS);
    if more > 0 {
        text.push_str(&line(&format!("and {more} more")));
    }
    if let Some(plugin) = &request.plugin {
        let plugin = elided(plugin, MAX_PLUGIN);
        text.push_str(&match &request.digest {
            Some(digest) => line(&format!("plugin: {plugin} ({digest})")),
            None => line(&format!("server: {plugin}")),
        });
    }
    for grant in &request.grants {
        text.push_str(&line(&format!("granted: {}", elided(grant, MAX_PATH))));
    }
    // The time left, because earlier questions may have used up some of it.
    let left = request.expires.duration_since(SystemTime::now()).unwrap_or_default();
    let time = humantime::format_duration(rounded(left, request.valid_for));
    text.push_str(&line(&format!("without an answer it is refused after {time}")));
    if offers.session() {
        text.push_str(&line("`s` allows this tool until palisade ends"));
    }
    if let Some(rule) = &offers.rule {
        text.push_str(&line(&format!(
            "`a` allows it in later runs, too, and in every workspace: it {rule}"
        )));
    }
    text + &offers.prompt(columns)
}

/// Rounds the time left of a question: to the whole time if only moments have passed, and else to
/// seconds, or to ten seconds if there are minutes left.
fn rounded(left: Duration, whole: Duration) -> Duration {
    const MOMENTS: Duration = Duration::from_secs(2);
    const MINUTE: u64 = 60;
    if left + MOMENTS > whole {
        return whole;
    }
    let seconds = left.as_secs_f64().round() as u64;
    Duration::from_secs(if seconds > MINUTE { (seconds + 5) / 10 * 10 } else { seconds.max(1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::wrap::width;

    #[test]
    fn only_an_offered_answer_is_an_answer() {
        let rule = StandingRule::for_test();
        let all = Offers { later_calls: LaterCalls::Possible, rule: Some(rule) };
        let is = |line: &str, reply| {
            assert_eq!(meaning(line.as_bytes(), &all), Reading::Reply(reply), "{line:?}");
        };
        ["y\n", "Yes\n", " y \r\n"].into_iter().for_each(|line| is(line, Reply::Yes));
        ["\n", "n\n", " NO \n"].into_iter().for_each(|line| is(line, Reply::No));
        ["s\n", "Session\n"].into_iter().for_each(|line| is(line, Reply::Session));
        ["a\n", "ALWAYS\n"].into_iter().for_each(|line| is(line, Reply::Always));
        for line in ["y", "always", "yy\n", "yes please\n", "\u{7f}y\n", "д\n"] {
            assert_eq!(meaning(line.as_bytes(), &all), Reading::Unclear, "{line:?}");
        }
        assert_eq!(meaning(b"", &all), Reading::End);
        assert_eq!(meaning(b"\xffy\n", &all), Reading::Unclear);
        for line in [b"a\n", b"s\n"] {
            assert_eq!(meaning(line, &Offers::default()), Reading::Unclear, "not offered");
        }
        assert!(all.again(usize::MAX).starts_with("please answer y, n, s or a\n"));
        assert!(Offers::default().again(usize::MAX).starts_with("please answer y or n\n"));
    }

    #[test]
    fn lines_of_a_question_fit_into_the_terminal() {
        let rule = StandingRule::for_test();
        let all = Offers { later_calls: LaterCalls::Possible, rule: Some(rule) };
        for columns in [20, 33, 80] {
            let shown = all.again(columns);
            assert!(shown.ends_with(": "), "the answer follows a blank: {shown:?}");
            assert!(shown.lines().all(|line| width(line) <= columns), "{columns}: {shown}");
        }
    }

    #[test]
    fn time_left_is_rounded_as_people_say_it() {
        let shown = |left: u64, whole: u64| {
            let (left, whole) = (Duration::from_millis(left), Duration::from_secs(whole));
            humantime::format_duration(rounded(left, whole)).to_string()
        };
        assert_eq!(shown(299_987, 300), "5m");
        assert_eq!(shown(298_600, 300), "5m");
        assert_eq!(shown(287_700, 300), "4m 50s");
        assert_eq!(shown(60_400, 300), "1m");
        assert_eq!(shown(41_700, 300), "42s");
        assert_eq!(shown(20, 300), "1s");
        assert_eq!(shown(900, 1), "1s");
        assert_eq!(shown(64_900, 65), "1m 5s");
    }
}
