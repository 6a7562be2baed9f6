//! The part of a text that a call returns.

use palisade_guest::{Error, Result};

/// The default limit, in bytes: less than 25,000 tokens of text or code, which is the most that
/// many clients show of one result.
const DEFAULT: usize = 64 * 1024;

/// The largest limit, in bytes: the host accepts 4 MiB per call, and the rest is for the lines
/// around the text.
const MAX: usize = 4_000_000;

/// A checked part of a text.
pub(crate) struct Part {
    start: usize,
    limit: usize,
}

/// The text of a part.
pub(crate) struct Cut<'a> {
    pub(crate) text: &'a str,
    /// The start of the next part, if there is one.
    pub(crate) next: Option<usize>,
}

impl Part {
    pub(crate) fn new(start: usize, limit: Option<usize>) -> Result<Self> {
        let limit = limit.unwrap_or(DEFAULT);
        match (1..=MAX).contains(&limit) {
            true => Ok(Self { start, limit }),
            false => Err(Error::invalid_input(
                "limit",
                format!("{limit} is not between 1 and {MAX} bytes"),
            )),
        }
    }

    /// Returns the part of a text, cut after a whole line if it has one, else after a whole
    /// character.
    pub(crate) fn of<'a>(&self, text: &'a str) -> Result<Cut<'a>> {
        let start = text.ceil_char_boundary(self.start);
        let Some(rest) = text.get(start..).filter(|rest| start == 0 || !rest.is_empty()) else {
            return Err(Error::invalid_input(
                "start",
                format!(
                    "{} is beyond the end of the text, which has {} bytes",
                    self.start,
                    text.len()
                ),
            ));
        };
        if rest.len() <= self.limit {
            return Ok(Cut { text: rest, next: None });
        }
        // At least one character, so that each call goes on.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest.floor_char_boundary(self.limit).max(first);
        let line = rest.get(..end).and_then(|text| text.rfind('\n'));
        let end = line.map_or(end, |line| line.saturating_add(1));
        let text = rest.get(..end).unwrap_or(rest);
        let next = start.saturating_add(end);
        Ok(Cut { text, next: Some(next).filter(|_| end < rest.len()) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn parts_add_up_to_the_text() {
        for text in ["", "one line", "a\nbb\nccc\n", "\u{1f600}\u{e4}\u{f6}x\n\u{fc}", "\n\n\n\n"] {
            for limit in 1..12 {
                let (mut whole, mut start) = (String::new(), Some(0));
                while let Some(at) = start {
                    let cut = Part::new(at, Some(limit)).unwrap().of(text).unwrap();
                    assert!(cut.text.len() <= limit.max(4), "{text:?} {limit}");
                    whole.push_str(cut.text);
                    start = cut.next;
                }
                assert_eq!(whole, text, "{limit}");
            }
        }
    }

    #[test]
    fn part_ends_with_a_whole_line() {
        let part = Part::new(2, Some(5)).unwrap();
        let cut = part.of("a\nbb\nccc\n").unwrap();
        assert_eq!((cut.text, cut.next), ("bb\n", Some(5)));
    }

    #[test]
    fn start_beyond_the_end_and_limits_out_of_bounds_are_refused() {
        assert_eq!(Part::new(4, None).unwrap().of("abc").err().unwrap().field(), Some("start"));
        assert!(Part::new(0, None).unwrap().of("").is_ok());
        for limit in [0, MAX + 1] {
            assert_eq!(Part::new(0, Some(limit)).err().unwrap().field(), Some("limit"));
        }
    }
}
