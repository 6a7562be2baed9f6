//! Sorts the members of an object by their keys.

use std::cmp::Ordering;

use crate::budget::{Exhausted, Purse};

/// The number of members sorted at once between two checks of the budget, provided that no key is
/// longer than `SHORT` bytes.
const RUN: usize = 64;
const SHORT: usize = 64;
/// The number of bytes compared at once.
const BLOCK: usize = 64;

/// The position of an object's member in the written text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    start: u32,
    key_end: u32,
    end: u32,
}

impl Member {
    /// Creates the position of a member from `start` to `end`, whose quoted key ends at `key_end`.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a text is read only where its places have 32 bits"
    )]
    pub(super) fn new(start: usize, key_end: usize, end: usize) -> Self {
        Self { start: start as u32, key_end: key_end as u32, end: end as u32 }
    }

    /// Returns the written member.
    pub(super) fn text(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Returns the written key without its quotes.
    fn key(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize + 1..self.key_end as usize - 1).unwrap_or_default()
    }

    /// Compares two keys by the bytes that they represent.
    pub(super) fn compare(self, other: Self, text: &[u8]) -> Ordering {
        let one = self.key(text);
        let other = other.key(text);
        // Each byte has one canonical form, so a common written prefix represents a common prefix.
        let from = settled(&one[..alike(one, other)]);
        Plain(&one[from..]).cmp(Plain(&other[from..]))
    }

    /// Returns the length of the written key, in bytes.
    fn key_length(self) -> usize {
        (self.key_end - self.start) as usize
    }
}

/// Returns the length of the common prefix of two texts, in bytes.
fn alike(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let blocks = blocks.take_while(|(one, other)| one == other).count() * BLOCK;
    blocks
        + one[blocks..].iter().zip(&other[blocks..]).take_while(|(one, other)| one == other).count()
}

/// Returns the length of the prefix that does not cut an escape in two. The longest escape has six
/// bytes, and a run of backslashes begins with an escape.
fn settled(text: &[u8]) -> usize {
    let near = text.len().saturating_sub(5);
    let escape = text[near..].iter().position(|byte| *byte == b'\\').map(|at| near + at);
    escape.map_or(text.len(), |at| {
        text[..at].iter().rposition(|byte| *byte != b'\\').map_or(0, |before| before + 1)
    })
}

/// Returns the unescaped key of a member, truncated to 64 characters.
pub(super) fn key_of(member: Member, text: &[u8]) -> String {
    let bytes: Vec<u8> = Plain(member.key(text)).take(4 * 64).collect();
    String::from_utf8_lossy(&bytes).chars().take(64).collect()
}

/// An iterator over the bytes of a written key, unescaped. Only control characters, quotes and
/// backslashes are written as escapes.
struct Plain<'t>(&'t [u8]);

impl Iterator for Plain<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if *first != b'\\' {
            self.0 = rest;
            return Some(*first);
        }
        let (escape, rest) = rest.split_first()?;
        self.0 = rest;
        Some(match escape {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let digits = rest.get(..4)?;
                self.0 = rest.get(4..)?;
                u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?
            }
            other => *other,
        })
    }
}

/// Sorts members by their keys, and checks the budget on the way. The caller has charged the memory
/// of the second list.
pub(super) fn sort(
    members: &mut [Member],
    text: &[u8],
    purse: &mut Purse<'_>,
) -> Result<(), Exhausted> {
    let is_short = members.iter().all(|member| member.key_length() <= SHORT);
    let mut width = if is_short { RUN } else { 1 };
    for run in members.chunks_mut(width) {
        run.sort_unstable_by(|one, other| one.compare(*other, text));
        purse.worked(run.len() * SHORT)?;
    }
    let mut merged = Vec::with_capacity(members.len());
    while width < members.len() {
        merged.clear();
        for pair in members.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, text, &mut merged, purse)?;
        }
        members.copy_from_slice(&merged);
        width *= 2;
    }
    Ok(())
}

fn merge(
    mut left: &[Member],
    mut right: &[Member],
    text: &[u8],
    merged: &mut Vec<Member>,
    purse: &mut Purse<'_>,
) -> Result<(), Exhausted> {
    while let ([one, more_left @ ..], [other, more_right @ ..]) = (left, right) {
        purse.worked(one.key_length().min(other.key_length()))?;
        if one.compare(*other, text) == Ordering::Greater {
            merged.push(*other);
            right = more_right;
        } else {
            merged.push(*one);
            left = more_left;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    Ok(())
}
