//! Splits a byte stream into lines of bounded length.

use crate::http::guarded_bytes;
use crate::messages::parse::BOUNDS;
use crate::messages::request_id;
use crate::messages::serialize::MAX_SMALL;
use bytes::Bytes;
use palisade::internal::Owed;
use rmcp::model::RequestId;

/// The size of a read buffer, in bytes.
pub(super) const READ_BUFFER: usize = 64 << 10;

/// A line without its terminator.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line within the bound. The memory of a long one is counted until its bytes are dropped.
    Whole(Bytes),
    /// Longer than the bound. The bytes were dropped; the id is kept if the beginning has it.
    TooLong(Option<RequestId>),
}

/// The line that is being read.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    line: Vec<u8>,
    /// The counted memory of a long line.
    owed: Option<Owed>,
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
            self.owed = None;
        }
        if self.too_long.is_none() {
            self.append(&bytes[..part]);
        }
        match end {
            Some(end) => Taken { bytes: end + 1, line: self.end() },
            None => Taken { bytes: part, line: None },
        }
    }

    /// Appends bytes, with a capacity that doubles up to the bound and is counted beforehand.
    fn append(&mut self, bytes: &[u8]) {
        let length = self.line.len() + bytes.len();
        if length > self.line.capacity() {
            let capacity = length.next_power_of_two().min(BOUNDS.bytes);
            let owed = (capacity > MAX_SMALL).then(|| Owed::new(capacity));
            self.line.reserve_exact(capacity - self.line.len());
            self.owed = owed;
        }
        self.line.extend_from_slice(bytes);
    }

    fn end(&mut self) -> Option<Line> {
        let Self { line, owed, too_long } = std::mem::take(self);
        if let Some(TooLong { id }) = too_long {
            return Some(Line::TooLong(id));
        }
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then(|| {
            Line::Whole(match owed {
                Some(owed) => guarded_bytes(line, owed),
                None => line.into(),
            })
        })
    }
}

/// A line that has exceeded the bound.
#[derive(Debug)]
struct TooLong {
    id: Option<RequestId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_never_exceeds_the_bound_and_is_counted() {
        let mut splitter = LineSplitter::default();
        for _ in 0..BOUNDS.bytes / 1000 {
            assert!(splitter.take(&[b'x'; 1000]).line.is_none());
            let (length, capacity) = (splitter.line.len(), splitter.line.capacity());
            assert!((length..=(2 * length).min(BOUNDS.bytes)).contains(&capacity), "{capacity}");
            assert_eq!(splitter.owed.is_some(), capacity > MAX_SMALL, "{length}");
        }
        assert!(matches!(splitter.take(b"\n").line, Some(Line::Whole(_))));
        assert!(splitter.owed.is_none() && splitter.line.capacity() == 0);
        let _ = splitter.take(&vec![b'x'; BOUNDS.bytes + 1]);
        assert!(splitter.owed.is_none() && splitter.line.capacity() == 0, "too long");
    }
}
