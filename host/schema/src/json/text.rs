//! JSON as canonical text, checked in one pass that builds no value.
//!
//! A value takes up to 90 times the memory of its text, and most readers of a JSON block need only
//! the text.

mod node;

use std::cmp::Ordering;
use std::fmt;

use serde::de::DeserializeSeed;
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use node::{Node, Place};

use super::order::{Member, key_of, sort};
use super::{JsonBounds, JsonError, Refusal, footprint, parse_within, refused, scratch};
use crate::budget::{Budget, Exhausted, Purse, Unlimited};

/// The maximum length of a text in bytes, regardless of the bounds. Offsets have 32 bits, and
/// canonical numbers may be four times as long.
const LONGEST: usize = 512 << 20;

/// The maximum nesting of a written value. It leaves a margin for the underlying parser.
const MAX_LEVELS: usize = 120;

/// The maximum number of bytes written for one byte of a string.
const ESCAPE: usize = 6;

/// Returns the number of bytes written for this byte of a string.
fn written(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | 8 | 9 | 10 | 12 | 13 => 2,
        0..=31 => ESCAPE,
        _ => 1,
    }
}

/// A JSON value as canonical text: sorted unique keys, no spaces, and numbers and strings as
/// `serde_json` writes them.
///
/// Two are equal if their texts are equal, and therefore if their values are.
///
/// ```
/// use palisade_schema::json::{Json, JsonBounds};
///
/// let json = Json::parse(r#"{"b": [1, 2.50], "a": "\u00fc"}"#, JsonBounds::CALL_INPUT)?;
/// assert_eq!(json.as_str(), r#"{"a":"ü","b":[1,2.5]}"#);
/// assert_eq!(json.to_value()["b"][0], 1);
/// # Ok::<(), palisade_schema::json::JsonError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json {
    text: String,
    footprint: u64,
}

impl Json {
    /// Parses a text that consists of one JSON value.
    ///
    /// # Errors
    ///
    /// [`JsonError`] with the reason, the position and the accepted alternative.
    pub fn parse(text: &str, bounds: JsonBounds) -> Result<Self, JsonError> {
        Self::parse_within(text, bounds, &Unlimited).map(|(json, _)| json)
    }

    /// Parses a text as [`parse`](Self::parse), within a budget. Also returns the number of budget
    /// bytes that the value keeps, which the caller must release.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and [`JsonError::Exhausted`]; nothing stays reserved then.
    pub fn parse_within(
        text: &str,
        bounds: JsonBounds,
        budget: &dyn Budget,
    ) -> Result<(Self, u64), JsonError> {
        let max = bounds.bytes.min(LONGEST);
        if text.len() > max {
            return Err(JsonError::TooLong { got: text.len(), max });
        }
        let mut pass = Pass::new(text, bounds, budget)?;
        let mut source = serde_json::Deserializer::from_str(text);
        let read = Node { pass: &mut pass, depth: 0, place: Place::First }
            .deserialize(&mut source)
            .and_then(|()| source.end());
        match read {
            Ok(()) => Ok(pass.finish()),
            Err(error) => Err(refused(pass.refusal, bounds, text, &error)),
        }
    }

    /// Returns the canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the canonical text as a string.
    #[must_use]
    pub fn into_string(self) -> String {
        self.text
    }

    /// Returns whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.text.starts_with('{')
    }

    /// Returns the approximate memory of [`to_value`](Self::to_value), in bytes.
    #[must_use]
    pub fn footprint(&self) -> u64 {
        self.footprint
    }

    /// Builds the value, which takes [`footprint`](Self::footprint) bytes of memory.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // Cannot fail: the text was parsed or written before.
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Builds the value within a budget. Also returns the number of budget bytes that it keeps,
    /// which the caller must release.
    ///
    /// # Errors
    ///
    /// [`Exhausted`]; nothing stays reserved then.
    pub fn to_value_within(&self, budget: &dyn Budget) -> Result<(Value, u64), Exhausted> {
        let bounds = JsonBounds { bytes: usize::MAX, depth: usize::MAX, members: usize::MAX };
        match parse_within(&self.text, bounds, budget) {
            Ok(value) => Ok(value),
            Err(JsonError::Exhausted(exhausted)) => Err(exhausted),
            // Unreachable, since the text was parsed or written before. Without a value the call
            // cannot continue.
            Err(_) => Err(Exhausted::Cancelled),
        }
    }
}

/// Converts any value to a text that can be parsed again: parts below 120 levels become strings
/// that contain their text.
impl From<Value> for Json {
    fn from(mut value: Value) -> Self {
        let footprint = Self::prepare(&mut value);
        Self { footprint, text: value.to_string() }
    }
}

impl Json {
    /// Makes a value one that can be parsed again from its text, and returns its memory.
    pub(super) fn prepare(value: &mut Value) -> u64 {
        flatten(value, MAX_LEVELS);
        footprint::of(value)
    }

    /// Wraps the text of a value that was prepared.
    pub(super) fn of_text(text: String, footprint: u64) -> Self {
        Self { text, footprint }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Json").field(&self.text).finish()
    }
}

/// Keeps `levels` levels of nesting, and converts deeper values to strings of their text.
fn flatten(value: &mut Value, levels: usize) {
    match (value, levels.checked_sub(1)) {
        (Value::Array(elements), Some(levels)) => {
            elements.iter_mut().for_each(|element| flatten(element, levels));
        }
        (Value::Object(members), Some(levels)) => {
            members.values_mut().for_each(|member| flatten(member, levels));
        }
        (value @ (Value::Array(_) | Value::Object(_)), None) => {
            *value = Value::String(value.to_string());
        }
        _ => {}
    }
}

/// Serializes the value directly from the text, without building it.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_transcode::transcode(&mut serde_json::Deserializer::from_str(&self.text), serializer)
    }
}

/// The state of the pass: the text written so far, and the members of the open objects.
struct Pass<'b> {
    bounds: JsonBounds,
    purse: Purse<'b>,
    /// The memory of the underlying parser, in bytes.
    scratch: u64,
    out: Vec<u8>,
    open: Vec<Member>,
    members: usize,
    footprint: u64,
    refusal: Option<Refusal>,
}

impl<'b> Pass<'b> {
    fn new(text: &str, bounds: JsonBounds, budget: &'b dyn Budget) -> Result<Self, Exhausted> {
        let scratch = scratch(text);
        let mut purse = Purse::new(budget);
        purse.take(text.len() as u64 + scratch)?;
        let out = Vec::with_capacity(text.len());
        let open = Vec::new();
        Ok(Self { bounds, purse, scratch, out, open, members: 0, footprint: 0, refusal: None })
    }

    fn finish(mut self) -> (Json, u64) {
        self.purse.put_back(
            (self.out.capacity() + self.open.capacity() * size_of::<Member>()) as u64
                + self.scratch,
        );
        self.out.shrink_to_fit();
        // Cannot fail: this memory is still reserved.
        let _ = self.purse.take(self.out.capacity() as u64);
        let text = String::from_utf8(self.out).unwrap_or_default();
        (Json { text, footprint: self.footprint }, self.purse.keep())
    }

    fn refuse<E: serde::de::Error>(&mut self, refusal: Refusal) -> E {
        self.refusal = Some(refusal);
        E::custom("refused")
    }

    fn affords<E: serde::de::Error>(&mut self, afforded: Result<(), Exhausted>) -> Result<(), E> {
        afforded.map_err(|exhausted| self.refuse(Refusal::Exhausted(exhausted)))
    }

    /// Makes room for `more` bytes. Charges old and new allocation, since both exist during the
    /// move.
    fn room<E: serde::de::Error>(&mut self, more: usize) -> Result<(), E> {
        let needed = self.out.len() + more;
        if needed <= self.out.capacity() {
            return Ok(());
        }
        let grown = needed.max(self.out.capacity() / 2 * 3);
        let taken = self.purse.take(grown as u64);
        let old = self.out.capacity() as u64;
        self.affords(taken)?;
        self.out.reserve_exact(grown - self.out.len());
        self.purse.put_back(old);
        Ok(())
    }

    fn byte<E: serde::de::Error>(&mut self, byte: u8) -> Result<(), E> {
        self.room(1)?;
        self.out.push(byte);
        Ok(())
    }

    fn scalar<E: serde::de::Error>(&mut self, value: impl Serialize) -> Result<(), E> {
        /// The maximum length of a written number.
        const NUMBER: usize = 32;
        let worked = self.purse.worked(NUMBER / 2);
        self.affords(worked)?;
        if self.out.capacity() - self.out.len() >= NUMBER {
            return serde_json::to_writer(&mut self.out, &value).map_err(E::custom);
        }
        // Close to the end of the buffer the number may fit even if the longest one would not.
        let mut written = [0; NUMBER];
        let mut rest = &mut written[..];
        serde_json::to_writer(&mut rest, &value).map_err(E::custom)?;
        let length = NUMBER - rest.len();
        self.room(length)?;
        self.out.extend_from_slice(&written[..length]);
        Ok(())
    }

    fn string<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        let worked = self.purse.worked(text.len());
        self.affords(worked)?;
        self.footprint += footprint::string(text.len());
        if self.out.capacity() - self.out.len() < text.len() * ESCAPE + 2 {
            let more = text.bytes().map(written).sum::<usize>() + 2;
            self.room(more)?;
        }
        serde_json::to_writer(&mut self.out, text).map_err(E::custom)
    }

    fn count<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.members += 1;
        if self.members > self.bounds.members { Err(self.refuse(Refusal::Members)) } else { Ok(()) }
    }

    /// Records a member of the innermost object.
    fn note<E: serde::de::Error>(&mut self, member: Member) -> Result<(), E> {
        if self.open.len() == self.open.capacity() {
            let old = self.open.capacity();
            let more = old.max(8);
            let taken = self.purse.take(((old + more) * size_of::<Member>()) as u64);
            self.affords(taken)?;
            self.open.reserve_exact(more);
            self.purse.put_back((old * size_of::<Member>()) as u64);
        }
        self.open.push(member);
        Ok(())
    }

    /// Sorts the members from `first` on, of an object whose text begins at `begin`.
    fn arrange<E: serde::de::Error>(&mut self, first: usize, begin: usize) -> Result<(), E> {
        let length = self.out.len() - begin;
        let members = self.open.len() - first;
        let scratch = (length + members * size_of::<Member>()) as u64;
        let taken = self.purse.take(scratch);
        self.affords(taken)?;
        let sorted = sort(&mut self.open[first..], &self.out, &mut self.purse);
        self.affords(sorted)?;
        let twice = self.open[first..].windows(2).find_map(|pair| match pair {
            [one, other] if one.compare(*other, &self.out) == Ordering::Equal => {
                Some(key_of(*one, &self.out))
            }
            _ => None,
        });
        if let Some(key) = twice {
            return Err(self.refuse(Refusal::Duplicate(key)));
        }
        let mut arranged = Vec::with_capacity(length);
        for member in &self.open[first..] {
            if !arranged.is_empty() {
                arranged.push(b',');
            }
            let member = member.text(&self.out);
            if let Err(exhausted) = self.purse.worked(member.len()) {
                return Err(self.refuse(Refusal::Exhausted(exhausted)));
            }
            arranged.extend_from_slice(member);
        }
        self.out.truncate(begin);
        self.out.extend_from_slice(&arranged);
        self.purse.put_back(scratch);
        Ok(())
    }
}
