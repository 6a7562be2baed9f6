//! The removal of secrets from text that goes to a guest: as they are, percent-encoded, escaped for
//! JSON and HTML, and in Base64. Other transformations are not recognised.

mod spelling;
#[cfg(test)]
mod tests;

use crate::limits;
use bytes::{Bytes, BytesMut};
use spelling::{Case, ESCAPES, Reading, Readings, Spelling};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

/// The text in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// The number of offsets that a search looks ahead. No form of a symbol is as long, even after the
/// end of a line.
const AHEAD: usize = 32;

/// The spellings of a plugin's secrets. Clones share them.
#[derive(Clone)]
pub(crate) struct Redaction {
    spellings: Arc<Spellings>,
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redaction").finish_non_exhaustive()
    }
}

/// The secrets are too large together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Redaction {
    /// Prepares the spellings of these secrets.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], if they have more than 16 KiB together.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<Self, TooLarge> {
        let secrets: Vec<&str> = secrets.into_iter().collect();
        if secrets.iter().map(|secret| secret.len()).sum::<usize>() > limits::SECRETS {
            return Err(TooLarge);
        }
        Ok(Self { spellings: Arc::new(Spellings::of(&secrets)) })
    }

    /// Removes the secrets from a whole text. Returns `None` if it has none.
    pub(crate) fn redact(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        self.copy(text, text.len(), &mut out);
        (out != text).then_some(out)
    }

    /// Returns true if the name of a header, which is in lower case, has a secret.
    pub(crate) fn is_in_name(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.spellings.find(name.as_bytes(), 0..name.len(), Case::Lost).is_some()
    }

    /// Starts the redaction of a text that comes in pieces.
    pub(crate) fn stream(&self) -> RedactedStream {
        RedactedStream { redaction: self.clone(), held: BytesMut::new() }
    }

    /// Copies the text without the spellings that begin before `end`, and returns the number of
    /// bytes that are dealt with.
    fn copy(&self, text: &[u8], end: usize, out: &mut Vec<u8>) -> usize {
        let mut done = 0;
        while let Some(found) = self.spellings.find(text, done..end, Case::Kept) {
            out.extend_from_slice(&text[done..found.start]);
            out.extend_from_slice(REDACTED.as_bytes());
            done = found.end;
        }
        if done < end {
            out.extend_from_slice(&text[done..end]);
            done = end;
        }
        done
    }
}

/// The spellings of several secrets.
struct Spellings {
    /// In order, so that those with the same beginning are next to each other.
    sorted: Vec<Spelling>,
    starts: Starts,
    /// The length of the longest text that one of them matches, in bytes.
    longest: usize,
}

impl Spellings {
    fn of(secrets: &[&str]) -> Self {
        let mut sorted: Vec<Spelling> =
            secrets.iter().flat_map(|secret| spelling::spellings(secret)).collect();
        sorted.retain(|spelling| !spelling.is_empty());
        sorted.sort_unstable();
        sorted.dedup();
        let longest = sorted.iter().map(|spelling| spelling::longest(spelling)).max().unwrap_or(1);
        Self { starts: Starts::of(&sorted), sorted, longest }
    }

    /// Finds the first text that a spelling matches, and that begins in a range. Of several that
    /// begin at once, the longest is found.
    ///
    /// The search reads the text once. At each offset it keeps the beginnings of spellings that the
    /// text matches up to there, each of them once, so that a byte costs at most as much as the
    /// secrets are long. It costs that much only where a secret repeats itself: 3,000 times `a`
    /// take 20 microseconds a byte of text that nearly matches, 3,000 backslashes, which have forms
    /// of four lengths, 150 microseconds, and 3,000 random letters 30 nanoseconds.
    fn find(&self, text: &[u8], starts: Range<usize>, case: Case) -> Option<Range<usize>> {
        // The names of headers, which have lost their case, are short.
        let may_start = |at: &usize| case == Case::Lost || self.starts.contains(text, *at);
        let mut search = Search::new(&self.sorted, case);
        let mut at = starts.start;
        loop {
            if search.waiting == 0 {
                if search.found.is_some() {
                    return search.found;
                }
                at = (at..starts.end).find(may_start)?;
            }
            search.step(text, at, starts.contains(&at) && may_start(&at));
            at += 1;
        }
    }
}

/// The pairs of bytes that a spelling may begin with.
struct Starts(Vec<[bool; 256]>);

impl Starts {
    fn of(spellings: &[Spelling]) -> Self {
        let mut starts = vec![[false; 256]; 256];
        for spelling in spellings {
            let [first, rest @ ..] = &**spelling else { continue };
            for byte in first.first_bytes() {
                let Some(seconds) = starts.get_mut(usize::from(byte)) else { continue };
                match rest.first() {
                    Some(second) if byte.is_ascii() && !ESCAPES.contains(&byte) => {
                        // The second symbol may be on the next line.
                        for byte in second.first_bytes().chain(*b"\r\n") {
                            seconds[usize::from(byte)] = true;
                        }
                    }
                    // An escape goes on in many ways.
                    _ => *seconds = [true; 256],
                }
            }
        }
        Self(starts)
    }

    /// Returns true if a spelling may begin at this offset.
    fn contains(&self, text: &[u8], at: usize) -> bool {
        let Some(seconds) = text.get(at).and_then(|byte| self.0.get(usize::from(*byte))) else {
            return false;
        };
        text.get(at + 1).is_none_or(|byte| seconds[usize::from(*byte)])
    }
}

/// The beginning of some spellings, which the text up to an offset matches.
#[derive(Debug, Clone, Copy)]
struct State {
    /// The number of symbols.
    depth: usize,
    /// The range of the spellings that begin so.
    first: usize,
    last: usize,
    /// The offset of the first symbol.
    start: usize,
}

/// A search for spellings, from one offset to the next.
struct Search<'a> {
    sorted: &'a [Spelling],
    readings: Readings,
    /// The states of this offset and the next ones, each at the remainder of its offset.
    states: [Vec<State>; AHEAD],
    /// The number of all states.
    waiting: usize,
    found: Option<Range<usize>>,
}

impl<'a> Search<'a> {
    fn new(sorted: &'a [Spelling], case: Case) -> Self {
        let states = std::array::from_fn(|_| Vec::new());
        Self { sorted, readings: Readings::new(case), states, waiting: 0, found: None }
    }

    /// Continues the states at an offset, and begins there if a spelling may start.
    fn step(&mut self, text: &[u8], at: usize, may_start: bool) {
        let mut states = std::mem::take(&mut self.states[at % AHEAD]);
        self.waiting -= states.len();
        if may_start && self.found.is_none() {
            states.push(State { depth: 0, first: 0, last: self.sorted.len(), start: at });
        }
        if !states.is_empty() {
            // Of equal states, the one with the earliest start is kept. In this order, states that
            // one step has added are sorted already.
            states.sort_by_key(|state| (Reverse(state.depth), state.first, state.start));
            states.dedup_by_key(|state| (state.depth, state.first));
            self.readings.read(text.get(at..).unwrap_or_default());
            let readings = std::mem::take(&mut self.readings.found);
            for state in states.drain(..) {
                self.advance(state, &readings, at);
            }
            self.readings.found = readings;
        }
        self.states[at % AHEAD] = states;
    }

    /// Adds the states after one more symbol.
    fn advance(&mut self, state: State, readings: &[Reading], at: usize) {
        let State { depth, first, last, start } = state;
        let group = self.sorted.get(first..last).unwrap_or_default();
        for reading in readings {
            let symbol = Some(&reading.symbol);
            let before = group.partition_point(|spelling| spelling.get(depth) < symbol);
            let group = group.get(before..).unwrap_or_default();
            if group.first().is_none_or(|spelling| spelling.get(depth) != symbol)
                || (depth == 0 && reading.is_on_next_line)
                || self.found.as_ref().is_some_and(|found| found.start < start)
            {
                continue;
            }
            let count = group.partition_point(|spelling| spelling.get(depth) == symbol);
            let first = first + before;
            debug_assert!(reading.length < AHEAD, "{reading:?}");
            let next = State { depth: depth + 1, first, last: first + count, start };
            self.add(next, at + reading.length);
        }
    }

    /// Adds a state at an offset, and takes note if the text matches a spelling up to there.
    fn add(&mut self, state: State, at: usize) {
        // The shortest spelling is the first one, and no two are equal.
        let is_whole = self.sorted.get(state.first).is_some_and(|it| it.len() == state.depth);
        let is_better = |found: &Range<usize>| state.start < found.start || found.end < at;
        if is_whole && self.found.as_ref().is_none_or(is_better) {
            self.found = Some(state.start..at);
        }
        if state.first + usize::from(is_whole) < state.last {
            self.states[at % AHEAD].push(state);
            self.waiting += 1;
        }
    }
}

/// The redaction of a text that comes in pieces. It holds back the end of the text in which a
/// spelling may begin, and at most as much again.
#[derive(Debug)]
pub(crate) struct RedactedStream {
    redaction: Redaction,
    held: BytesMut,
}

impl RedactedStream {
    /// Takes a piece, and returns the text that is free of secrets.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        let longest = self.redaction.spellings.longest;
        // A spelling that begins before this place is complete.
        let settled = (self.held.len() + 1).saturating_sub(longest);
        // Each search settles as much as it reads again, however small the pieces are.
        if settled < longest {
            return Bytes::new();
        }
        let mut out = Vec::new();
        let done = self.redaction.copy(&self.held, settled, &mut out);
        let _ = self.held.split_to(done);
        out.into()
    }

    /// Returns the rest of the text.
    pub(crate) fn finish(&mut self) -> Bytes {
        let mut out = Vec::new();
        let end = self.held.len();
        self.redaction.copy(&self.held, end, &mut out);
        self.held.clear();
        out.into()
    }
}
