//! Checks the former content of the event file: a run appends its events to those of earlier runs,
//! and to nothing else.

use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

/// Maximum length of the first line, in bytes: the whole queue of a file holds at most this.
const MAX_LINE: u64 = 8 << 20;

/// The end of the former content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Former {
    /// There is none, or its last line has its end.
    Whole,
    /// Its last line has no end, since a run was killed within it.
    Torn,
}

/// Checks that a file is empty, or that its first line is an event. `again` opens the same file for
/// reading. A pipe or a device has no former content.
///
/// # Errors
///
/// If the file holds something else, or cannot be read.
pub(super) fn check(file: &File, again: impl FnOnce() -> io::Result<File>) -> io::Result<Former> {
    let found = file.metadata()?;
    if !found.is_file() || found.len() == 0 {
        return Ok(Former::Whole);
    }
    let former = again()?;
    // Another process may have put a pipe or a device in its place.
    if former.metadata()?.is_file() && is_event(&first_line(&former)?) {
        return end(former);
    }
    Err(io::Error::other(
        "it holds something other than events, and is kept as it is; give a new file, or one with the events of earlier runs",
    ))
}

fn end(mut file: File) -> io::Result<Former> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(if last == *b"\n" { Former::Whole } else { Former::Torn })
}

fn first_line(file: &File) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(file.take(MAX_LINE)).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// The members of each event. Logs of other programs have some of them.
const MEMBERS: [&str; 4] = ["v", "seq", "time", "event"];

/// Returns true if a line is a JSON object with the members of an event.
fn is_event(line: &[u8]) -> bool {
    let members = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(line);
    members.is_ok_and(|members| MEMBERS.iter().all(|name| members.contains_key(*name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_line_requires_the_members_of_an_event() {
        let event = r#"{"v":1,"seq":0,"time":"2026-01-01T00:00:00.000Z","event":"tool.called"}"#;
        assert!(is_event(event.as_bytes()) && is_event(format!("{event}\n").as_bytes()));
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
