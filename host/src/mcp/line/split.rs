//! Bytes made into lines of a bounded length, as they come.

use crate::mcp::frame::BOUNDS;

/// What stands between two line ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// Longer than a message may be; its bytes were not kept.
    TooLong,
}

/// The line that has begun.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    line: Vec<u8>,
    is_too_long: bool,
}

impl Splitter {
    /// Takes bytes in up to the next line end: how many those are, and the line, where one ends there that is not blank. What a line has more than it may have
    /// is thrown away.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (usize, Option<Line>) {
        let (part, ends) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end, true),
            None => (bytes.len(), false),
        };
        if self.line.len() + part > BOUNDS.bytes {
            self.is_too_long = true;
            self.line = Vec::new();
        }
        if !self.is_too_long {
            self.line.extend_from_slice(&bytes[..part]);
        }
        (part + usize::from(ends), if ends { self.end() } else { None })
    }

    fn end(&mut self) -> Option<Line> {
        let Self { line, is_too_long } = std::mem::take(self);
        if is_too_long {
            return Some(Line::TooLong);
        }
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then_some(Line::Whole(line))
    }
}
