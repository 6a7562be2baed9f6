//! Splits a byte stream into lines of bounded length.

use crate::messages::parse::BOUNDS;
use crate::messages::request_id;
use rmcp::model::RequestId;

/// The size of a read buffer, in bytes.
pub(super) const READ_BUFFER: usize = 64 << 10;

/// A line without its terminator.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line within the bound.
    Whole(Vec<u8>),
    /// Longer than the bound. The bytes were dropped; the id is kept if the beginning has it.
    TooLong(Option<RequestId>),
}

/// The line that is being read.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    line: Vec<u8>,
    too_long: Option<TooLong>,
}

/// The part of some bytes that a [`LineSplitter`] has taken.
pub(super) struct Taken {
    /// The number of bytes.
    pub(super) bytes: usize,
    /// The line that ends with them.
    pub(super) line: Option<Line>,
}

impl LineSplitter {
    /// Takes bytes up to the next line end. Bytes beyond the bound are dropped, and so are blank
    /// lines.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Taken {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = end.unwrap_or(bytes.len());
        if self.too_long.is_none() && self.line.len() + part > BOUNDS.bytes {
            self.too_long = Some(TooLong { id: request_id::in_head(&self.line) });
            self.line = Vec::new();
        }
        if self.too_long.is_none() {
            self.line.extend_from_slice(&bytes[..part]);
        }
        match end {
            Some(end) => Taken { bytes: end + 1, line: self.end() },
            None => Taken { bytes: part, line: None },
        }
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

/// A line that has exceeded the bound.
#[derive(Debug)]
struct TooLong {
    id: Option<RequestId>,
}
