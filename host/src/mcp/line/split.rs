//! Bytes made into lines of a bounded length, as they come.

use crate::mcp::frame::{BOUNDS, id_at_head};
use rmcp::model::RequestId;

/// What stands between two line ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// Longer than a message may be. Its bytes were not kept; the id is, where their beginning says it.
    TooLong(Option<RequestId>),
}

/// The line that has begun.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    line: Vec<u8>,
    too_long: Option<TooLong>,
}

/// A line that has passed the bound.
#[derive(Debug)]
struct TooLong {
    id: Option<RequestId>,
}

impl Splitter {
    /// Takes bytes in up to the next line end: how many those are, and the line, where one ends there that is not blank. What a line has more than it may have
    /// is thrown away.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (usize, Option<Line>) {
        let (part, ends) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end, true),
            None => (bytes.len(), false),
        };
        if self.too_long.is_none() && self.line.len() + part > BOUNDS.bytes {
            self.too_long = Some(TooLong { id: id_at_head(&self.line) });
            self.line = Vec::new();
        }
        if self.too_long.is_none() {
            self.line.extend_from_slice(&bytes[..part]);
        }
        (part + usize::from(ends), if ends { self.end() } else { None })
    }

    fn end(&mut self) -> Option<Line> {
        let Self { line, too_long } = std::mem::take(self);
        if let Some(TooLong { id }) = too_long {
            return Some(Line::TooLong(id));
        }
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then_some(Line::Whole(line))
    }
}
