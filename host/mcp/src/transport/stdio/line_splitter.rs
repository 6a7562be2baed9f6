//! Splits a byte stream into lines of bounded length.

use crate::messages::parse::{BOUNDS, id_at_head};
use rmcp::model::RequestId;

/// A line without its terminator.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// Longer than the bound. The bytes were dropped; the id is kept if the beginning has it.
    TooLong(Option<RequestId>),
}

/// The line that is being read.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    line: Vec<u8>,
    too_long: Option<TooLong>,
}

/// A line that has exceeded the bound.
#[derive(Debug)]
struct TooLong {
    id: Option<RequestId>,
}

impl Splitter {
    /// Consumes bytes up to the next line end. Returns their number, and the line if one ends there
    /// and is not blank. Bytes beyond the bound are dropped.
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
