//! Finds the single occurrence of a text, or explains why there is none.

mod near;

use crate::workspace::shown;
use std::path::Path;

/// Maximum number of listed places: for more of them, a longer text helps more than a longer list.
const MAX_NAMED: usize = 10;

/// The reason why a text does not occur exactly once.
#[derive(Debug, PartialEq)]
pub(crate) enum Problem {
    /// It does not occur.
    Absent,
    /// It occurs more than once.
    Repeated {
        /// The number of occurrences, without overlapping ones.
        count: usize,
        /// The first positions, in bytes.
        first: Vec<usize>,
    },
}

/// Returns the position of `old`, which is not empty, in `text` if it occurs once.
pub(crate) fn only(text: &str, old: &str) -> Result<usize, Problem> {
    let mut places = text.match_indices(old).map(|(at, _)| at);
    let Some(at) = places.next() else { return Err(Problem::Absent) };
    let mut first: Vec<_> =
        std::iter::once(at).chain(places.by_ref().take(MAX_NAMED.saturating_sub(1))).collect();
    let count = first.len().saturating_add(places.count());
    // `match_indices` skips overlapping occurrences, which are ambiguous as well.
    first.extend(overlapping(text, old, at).filter(|_| count == 1));
    match first.len() {
        1 => Ok(at),
        shown => Err(Problem::Repeated { count: count.max(shown), first }),
    }
}

impl Problem {
    /// Describes the problem with `old` and the accepted values to the caller.
    pub(crate) fn describe(&self, text: &str, old: &str, path: &Path) -> String {
        let path = shown(path);
        match self {
            Self::Absent => format!("it does not occur in {path}; {}", near::hint(text, old)),
            Self::Repeated { count, first } => {
                let more = if *count > first.len() { " and more" } else { "" };
                let lines: Vec<_> = first.iter().map(|at| line_of(text, *at).to_string()).collect();
                let lines = lines.join(", ");
                format!(
                    "it occurs {count} times in {path}, at lines {lines}{more} (counted from 0); \
                     include more of the lines around the one that is meant"
                )
            }
        }
    }
}

fn overlapping(text: &str, old: &str, at: usize) -> Option<usize> {
    let next = at.saturating_add(old.chars().next().map_or(1, char::len_utf8));
    text.get(next..).and_then(|rest| rest.find(old)).map(|found| found.saturating_add(next))
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).map_or(0, |above| above.bytes().filter(|byte| *byte == b'\n').count())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn said(text: &str, old: &str) -> String {
        only(text, old).unwrap_err().describe(text, old, Path::new("f"))
    }

    #[test]
    fn single_occurrence_is_found() {
        assert_eq!(only("abcabd", "abd"), Ok(3));
        assert_eq!(only("äöü", "ö"), Ok(2));
    }

    #[test]
    fn several_occurrences_are_counted_by_line() {
        let wanted = "it occurs 3 times in `f`, at lines 0, 0, 2 (counted from 0); \
                      include more of the lines around the one that is meant";
        assert_eq!(said("x x\n\nx", "x"), wanted);
        assert!(said(&"x\n".repeat(25), "x").starts_with(
            "it occurs 25 times in `f`, at lines 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and more (counted"
        ));
    }

    #[test]
    fn overlapping_occurrences_count_separately() {
        assert_eq!(only("aaa", "aa"), Err(Problem::Repeated { count: 2, first: vec![0, 1] }));
        assert_eq!(only("ähäh ä", "ähä"), Ok(0));
        assert_eq!(only("ähähä", "ähä"), Err(Problem::Repeated { count: 2, first: vec![0, 3] }));
    }
}
