//! Checks the former content of a file: a run appends its events to those of earlier runs, and its
//! results replace earlier results. Other content is kept.

use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

/// Maximum length of a line, in bytes: the whole queue of a file of events holds at most this. A
/// longer line of results is refused, since it cannot be told from other content.
const MAX_LINE: u64 = 8 << 20;

/// The lines that a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Events,
    Results,
}

impl Content {
    fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Results => "results",
        }
    }

    /// Returns members of each line. Logs of other programs have some of them.
    fn members(self) -> [&'static str; 4] {
        match self {
            Self::Events => ["v", "seq", "time", "event"],
            Self::Results => ["call_id", "tool", "success", "files_modified"],
        }
    }

    /// Returns the beginning of each line.
    fn start(self) -> &'static [u8] {
        match self {
            Self::Events => b"{\"v\":",
            Self::Results => b"{\"call_id\":",
        }
    }

    /// Returns true if a file that is not empty has such lines: the first one, and all of them if
    /// they are to be replaced. A run that was killed, or a full disk, may have left the beginning
    /// of a line.
    fn is_all_of(self, file: &File) -> io::Result<bool> {
        let mut lines = BufReader::new(file);
        loop {
            let mut line = Vec::new();
            lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
            let is_torn = !line.ends_with(b"\n") && line.starts_with(self.start());
            match (self, line.is_empty() || is_torn || self.accepts(&line)) {
                (_, false) => return Ok(false),
                (Self::Events, true) => return Ok(true),
                (Self::Results, true) if line.is_empty() => return Ok(true),
                (Self::Results, true) => {}
            }
        }
    }

    /// Returns true if a line is a JSON object with these members.
    fn accepts(self, line: &[u8]) -> bool {
        let members = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(line);
        members.is_ok_and(|members| self.members().iter().all(|name| members.contains_key(*name)))
    }
}

/// The end of the former content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Former {
    /// There is none, or its last line has its end.
    Whole,
    /// Its last line has no end, since a run was killed within it.
    Torn,
}

/// Checks that a file is empty, or that its lines are of this kind: the first one of events, and
/// each of results. `again` opens the same file
/// for reading. A pipe or a device has no former content.
///
/// # Errors
///
/// If the file holds something else, or cannot be read.
pub(super) fn check(
    file: &File,
    content: Content,
    again: impl FnOnce() -> io::Result<File>,
) -> io::Result<Former> {
    let found = file.metadata()?;
    if !found.is_file() || found.len() == 0 {
        return Ok(Former::Whole);
    }
    let former = again()?;
    // Another process may have put a pipe or a device in its place.
    if former.metadata()?.is_file() && content.is_all_of(&former)? {
        return end(former);
    }
    Err(io::Error::other(format!(
        "it holds something other than {0}, and is kept as it is; give a new file, or one with the {0} of earlier runs",
        content.name()
    )))
}

fn end(mut file: File) -> io::Result<Former> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(if last == *b"\n" { Former::Whole } else { Former::Torn })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use std::io::Write as _;

    #[test]
    fn results_are_replaced_only_where_every_line_is_one() {
        let result = r#"{"call_id":"1","tool":"t","success":true,"files_modified":[]}"#;
        let is_replaced = |text: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            check(&file, Content::Results, || {
                let mut again = file.try_clone()?;
                again.rewind()?;
                Ok(again)
            })
            .is_ok()
        };
        assert!(is_replaced(&format!("{result}\n{result}\n")));
        for torn in ["{\"call_id\":\"2\"", "{\"call_id\":"] {
            assert!(is_replaced(torn) && is_replaced(&format!("{result}\n{torn}")), "{torn}");
        }
        for other in ["notes", "notes\n", "\n", "{\"a\":1}\n"] {
            assert!(!is_replaced(&format!("{result}\n{other}")), "{other:?}");
            assert!(!is_replaced(other), "{other:?}");
        }
    }

    #[test]
    fn event_line_requires_the_members_of_an_event() {
        let event = r#"{"v":1,"seq":0,"time":"2026-01-01T00:00:00.000Z","event":"tool.called"}"#;
        let is_event = |line: &[u8]| Content::Events.accepts(line);
        assert!(is_event(event.as_bytes()) && is_event(format!("{event}\n").as_bytes()));
        assert!(!Content::Results.accepts(event.as_bytes()));
        assert!(!is_event(br#"{"event":"birthday","time":"today"}"#), "a log of another program");
        for line in [
            "",
            "\n",
            "event",
            "[\"event\"]",
            "{\"v\": 1}",
            "{\"event\": ",
            "\"event\"",
            "{\"a\": {\"event\": 1}}",
        ] {
            assert!(!is_event(line.as_bytes()), "{line}");
        }
    }
}
