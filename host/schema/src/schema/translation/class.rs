//! Classes of characters, in brackets or as an escape.

use std::collections::BTreeSet;

use super::escape::Escape;
use super::{Rest, push_literal};

/// The class of no character.
pub(super) const NEVER: &str = r"[^\x{0}-\x{10ffff}]";
/// The class of every character.
const ALWAYS: &str = r"[\x{0}-\x{10ffff}]";

const MAX: u32 = char::MAX as u32;
/// The halves of surrogate pairs, which no text contains.
const SURROGATES: (u32, u32) = (0xd800, 0xdfff);

const DIGITS: [(u32, u32); 1] = [(0x30, 0x39)];
const WORD: [(u32, u32); 4] = [(0x30, 0x39), (0x41, 0x5a), (0x5f, 0x5f), (0x61, 0x7a)];
/// White space and line terminators of ECMA-262.
const SPACE: [(u32, u32); 10] = [
    (0x9, 0xd),
    (0x20, 0x20),
    (0xa0, 0xa0),
    (0x1680, 0x1680),
    (0x2000, 0x200a),
    (0x2028, 0x2029),
    (0x202f, 0x202f),
    (0x205f, 0x205f),
    (0x3000, 0x3000),
    (0xfeff, 0xfeff),
];

/// A set of characters.
#[derive(Default)]
pub(super) struct Class {
    is_negated: bool,
    /// Ranges of code points, in any order.
    ranges: Vec<(u32, u32)>,
    /// Properties such as `\p{L}`, each once, because uniting large classes takes long.
    properties: BTreeSet<String>,
}

/// One item of a class, or an end of a range.
enum Item {
    Character(u32),
    Class(Class),
}

impl Class {
    /// Returns the class of an escape such as `\d`.
    pub(super) fn perl(kind: char) -> Self {
        let ranges = match kind.to_ascii_lowercase() {
            'd' => DIGITS.to_vec(),
            'w' => WORD.to_vec(),
            _ => SPACE.to_vec(),
        };
        let ranges = if kind.is_ascii_uppercase() { complement(&ranges) } else { ranges };
        Self { ranges, ..Self::default() }
    }

    pub(super) fn property(text: String) -> Self {
        Self { properties: BTreeSet::from([text]), ..Self::default() }
    }

    /// Reads a class, whose opening bracket has been read.
    pub(super) fn read(rest: &mut Rest<'_>) -> Result<Self, &'static str> {
        let mut class = Self { is_negated: rest.take('^'), ..Self::default() };
        while let Some(first) = Item::read(rest)? {
            let is_range = rest.0.starts_with('-') && !rest.0.starts_with("-]");
            if !is_range {
                class.add(first);
                continue;
            }
            rest.take('-');
            let last = Item::read(rest)?.ok_or(UNCLOSED)?;
            class.add_range(first, last)?;
        }
        Ok(class)
    }

    fn add(&mut self, item: Item) {
        match item {
            Item::Character(code) => self.ranges.push((code, code)),
            Item::Class(class) => {
                self.ranges.extend(class.ranges);
                self.properties.extend(class.properties);
            }
        }
    }

    fn add_range(&mut self, first: Item, last: Item) -> Result<(), &'static str> {
        match (first, last) {
            (Item::Character(first), Item::Character(last)) if first > last => {
                Err("a range such as `[z-a]` has its ends in the wrong order")
            }
            (Item::Character(first), Item::Character(last)) => {
                self.ranges.push((first, last));
                Ok(())
            }
            // A class is no end of a range, so the hyphen means itself.
            (first, last) => {
                self.add(first);
                self.add(Item::Character('-'.into()));
                self.add(last);
                Ok(())
            }
        }
    }

    /// Writes the class in brackets.
    pub(super) fn write(&self, text: &mut String) {
        let ranges = without_surrogates(&united(&self.ranges));
        if let ([], Some(property), None, false) = (
            ranges.as_slice(),
            self.properties.first(),
            self.properties.iter().nth(1),
            self.is_negated,
        ) {
            return text.push_str(property);
        }
        if ranges.is_empty() && self.properties.is_empty() {
            return text.push_str(if self.is_negated { ALWAYS } else { NEVER });
        }
        text.push_str(if self.is_negated { "[^" } else { "[" });
        for (first, last) in ranges {
            push_literal(text, first);
            if first != last {
                text.push('-');
                push_literal(text, last);
            }
        }
        self.properties.iter().for_each(|property| text.push_str(property));
        text.push(']');
    }
}

const UNCLOSED: &str = "a `[` has no `]`";

impl Item {
    /// Reads the next item, or the closing bracket.
    fn read(rest: &mut Rest<'_>) -> Result<Option<Self>, &'static str> {
        Ok(Some(match rest.next().ok_or(UNCLOSED)? {
            ']' => return Ok(None),
            '\\' => match Escape::read(rest)? {
                Escape::Boundary => Self::Character(0x8),
                Escape::NoBoundary => return Err("it has `\\B` in brackets"),
                Escape::Character(code) => Self::Character(code),
                Escape::Class(class) => Self::Class(class),
            },
            itself => Self::Character(itself.into()),
        }))
    }
}

/// Returns the same ranges in order, without overlap.
fn united(ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let mut united: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
    for (first, last) in sorted {
        match united.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => united.push((first, last)),
        }
    }
    united
}

/// Returns the code points that are in none of the ranges, which are in order.
fn complement(ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut missing = Vec::with_capacity(ranges.len() + 1);
    let mut next = 0;
    for (first, last) in ranges {
        if let Some(before) = first.checked_sub(1).filter(|before| *before >= next) {
            missing.push((next, before));
        }
        next = last.saturating_add(1);
    }
    missing.push((next, MAX));
    missing
}

fn without_surrogates(ranges: &[(u32, u32)]) -> Vec<(char, char)> {
    let (low, high) = SURROGATES;
    let parts = ranges
        .iter()
        .flat_map(|&(first, last)| [(first, last.min(low - 1)), (first.max(high + 1), last)]);
    let character = |(first, last): (u32, u32)| {
        (first <= last).then(|| Some((char::from_u32(first)?, char::from_u32(last)?))).flatten()
    };
    parts.filter_map(character).collect()
}
