//! The range of lines of a request.

use palisade_guest::{Error, Result};

/// A range of lines, counted from 0 and never empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lines {
    /// The first line.
    pub(super) first: u64,
    /// The last line, inclusive; `None` for the end of the file.
    pub(super) last: Option<u64>,
}

impl Lines {
    /// Builds a range from the caller's arguments; an `end` of -1 is the end of the file.
    pub(super) fn new(start: Option<u64>, end: Option<i64>) -> Result<Self> {
        let first = start.unwrap_or(0);
        let last = match end {
            None | Some(-1) => None,
            Some(end) => Some(u64::try_from(end).map_err(|_| wrong_end(end, first))?),
        };
        match (last, end) {
            (Some(last), Some(end)) if last < first => Err(wrong_end(end, first)),
            _ => Ok(Self { first, last }),
        }
    }

    /// Returns true if the range includes all lines.
    pub(super) fn are_all(self) -> bool {
        self.first == 0 && self.last.is_none()
    }

    /// Returns the number of lines of the range; `None` if it extends to the end.
    pub(super) fn count(self) -> Option<u64> {
        self.last.map(|last| last.saturating_sub(self.first).saturating_add(1))
    }
}

fn wrong_end(end: i64, first: u64) -> Error {
    let reason = format!(
        "{end} is before start_line {first}; \
         give the last line to return, at least {first}, or -1 for the end of the file"
    );
    Error::invalid_input("end_line", reason)
}
