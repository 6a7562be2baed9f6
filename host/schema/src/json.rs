//! Parses untrusted JSON: checks bounds before allocating, and refuses duplicate keys.

pub mod footprint;
mod length;
mod measure;
mod order;
mod text;

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::budget::{Budget, Exhausted, Purse, Unlimited};

pub use length::{text_length, text_within};
pub use text::Json;

/// The bounds of one JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonBounds {
    /// The maximum length of the text, in bytes.
    pub bytes: usize,
    /// The maximum nesting of arrays and objects; `[[]]` has depth 2. Values above 120 count as
    /// 120, the limit of the underlying parser.
    pub depth: usize,
    /// The maximum number of array elements and object members in the whole text.
    pub members: usize,
}

impl JsonBounds {
    /// The bounds of a call's input: 1 MiB, depth 64, 100,000 members.
    ///
    /// The largest legitimate inputs are files to write, which are one long string. More depth or
    /// members only cost validation time.
    pub const CALL_INPUT: Self = Self { bytes: 1024 * 1024, depth: 64, members: 100_000 };
}

/// A position in a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The offset from the start of the text, in bytes.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {} (byte {})", self.line, self.column, self.offset)
    }
}

/// The reason why a JSON text was refused. No variant repeats a value of the text, which may be a
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The text is longer than its bound.
    #[error("the JSON text is longer than the {max} bytes that are accepted")]
    TooLong {
        /// The length of the text, in bytes.
        got: usize,
        /// The bound.
        max: usize,
    },
    /// Arrays and objects are nested too deeply.
    #[error("the JSON is nested too deeply at {at}; a depth of {max} is accepted")]
    TooDeep {
        /// The bound.
        max: usize,
        /// The position where the bound was exceeded.
        at: Position,
    },
    /// The text has too many elements and members.
    #[error("the JSON has more than {max} elements and members, counted up to {at}")]
    TooManyMembers {
        /// The bound.
        max: usize,
        /// The position where the bound was exceeded.
        at: Position,
    },
    /// A value that was not read from text exceeds a bound.
    #[error("the JSON has more than {max} {what}")]
    TooMuch {
        /// The exceeded quantity.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// An object has a duplicate key. Parsers disagree about which occurrence counts, so such an
    /// object is ambiguous.
    #[error("an object has the key {key:?} twice, at {at}; every key may occur once")]
    DuplicateKey {
        /// The key, truncated to 64 characters.
        key: String,
        /// The position where the duplicate was found: after the second occurrence, or at the end
        /// of its object.
        at: Position,
    },
    /// The text is not JSON.
    #[error("not JSON at {at}: {reason}")]
    Syntax {
        /// The message of the parser.
        reason: String,
        /// The position where the parser stopped.
        at: Position,
    },
    /// The budget has no memory left for the value, or its deadline has passed.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The text is JSON, but not an object.
    #[error("want a JSON object, got {got}")]
    NotAnObject {
        /// The actual type.
        got: &'static str,
    },
}

/// Parses a text that consists of one JSON value.
///
/// # Errors
///
/// [`JsonError`] with the reason, the position and the accepted alternative.
pub fn parse_bounded(text: &str, bounds: JsonBounds) -> Result<Value, JsonError> {
    parse_within(text, bounds, &Unlimited).map(|(value, _)| value)
}

/// Parses a text as [`parse_bounded`], within a budget. Memory is reserved before it is allocated,
/// according to the size of the value and not of the text. Also returns the number of budget bytes
/// that the value keeps, which the caller must release.
///
/// # Errors
///
/// As [`parse_bounded`], and [`JsonError::Exhausted`]; nothing stays reserved then.
pub fn parse_within(
    text: &str,
    bounds: JsonBounds,
    budget: &dyn Budget,
) -> Result<(Value, u64), JsonError> {
    if text.len() > bounds.bytes {
        return Err(JsonError::TooLong { got: text.len(), max: bounds.bytes });
    }
    let scratch = scratch(text);
    let mut purse = Purse::new(budget);
    purse.take(scratch)?;
    let reader = Reader {
        bounds,
        members: Cell::new(0),
        refusal: Cell::new(None),
        purse: RefCell::new(purse),
    };
    let mut source = serde_json::Deserializer::from_str(text);
    let value = Level { reader: &reader, depth: 0 }.deserialize(&mut source);
    match value.and_then(|value| source.end().map(|()| value)) {
        Ok(value) => {
            let mut purse = reader.purse.into_inner();
            purse.put_back(scratch);
            Ok((value, purse.keep()))
        }
        Err(error) => Err(refused(reader.refusal.take(), bounds, text, &error)),
    }
}

/// Parses a JSON object. The empty text means `{}`, as everywhere in the contract with plugins.
///
/// # Errors
///
/// [`JsonError`] with the reason, the position and the accepted alternative.
pub fn parse_object(text: &str, bounds: JsonBounds) -> Result<Map<String, Value>, JsonError> {
    if text.is_empty() {
        return Ok(Map::new());
    }
    match parse_bounded(text, bounds)? {
        Value::Object(object) => Ok(object),
        other => Err(JsonError::NotAnObject { got: type_name(&other) }),
    }
}

/// Returns the JSON Schema name of a value's type.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The reason of a refusal, kept outside of the serde error, which can carry only a message.
enum Refusal {
    Depth,
    Members,
    Duplicate(String),
    Exhausted(Exhausted),
}

/// Returns the recorded refusal, or a syntax error if there is none.
fn refused(
    refusal: Option<Refusal>,
    bounds: JsonBounds,
    text: &str,
    error: &serde_json::Error,
) -> JsonError {
    let at = position(text, error.line(), error.column());
    match refusal {
        Some(Refusal::Exhausted(exhausted)) => JsonError::Exhausted(exhausted),
        Some(Refusal::Depth) => JsonError::TooDeep { max: bounds.depth, at },
        Some(Refusal::Members) => JsonError::TooManyMembers { max: bounds.members, at },
        Some(Refusal::Duplicate(key)) => JsonError::DuplicateKey { key, at },
        None => JsonError::Syntax { reason: reason(error), at },
    }
}

/// Returns the memory that the underlying parser takes for a text, in bytes: it copies strings with
/// escapes.
fn scratch(text: &str) -> u64 {
    if text.contains('\\') { text.len() as u64 } else { 0 }
}

struct Reader<'b> {
    bounds: JsonBounds,
    members: Cell<usize>,
    refusal: Cell<Option<Refusal>>,
    purse: RefCell<Purse<'b>>,
}

impl Reader<'_> {
    fn refuse<E: serde::de::Error>(&self, refusal: Refusal) -> E {
        self.refusal.set(Some(refusal));
        E::custom("refused")
    }

    fn count<E: serde::de::Error>(&self) -> Result<(), E> {
        let members = self.members.get().saturating_add(1);
        self.members.set(members);
        if members > self.bounds.members { Err(self.refuse(Refusal::Members)) } else { Ok(()) }
    }

    /// Charges the memory and the parsing work of a value, both in bytes.
    fn take<E: serde::de::Error>(&self, bytes: u64, work: usize) -> Result<(), E> {
        let mut purse = self.purse.borrow_mut();
        let taken = purse.take(bytes).and_then(|()| purse.worked(work));
        taken.map_err(|exhausted| self.refuse(Refusal::Exhausted(exhausted)))
    }

    /// Charges the memory of one more element. A growing vector needs its old allocation until the
    /// elements are moved.
    fn grow<E: serde::de::Error>(&self, items: &mut Vec<Value>) -> Result<(), E> {
        let old =
            if items.len() == items.capacity() { footprint::elements(items.len()) } else { 0 };
        self.take(footprint::element(items.len() + 1) + old, 0)?;
        if old > 0 {
            items.reserve(1);
            self.purse.borrow_mut().put_back(old);
        }
        Ok(())
    }
}

/// The key of an object member. Its memory and its slot in the object are charged before it is
/// copied.
struct Key<'r, 'b> {
    reader: &'r Reader<'b>,
    /// The position of the member in the object, from 1.
    nth: usize,
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<String, D::Error> {
        source.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<String, E> {
        self.reader.take(footprint::string(key.len()) + footprint::member(self.nth), key.len())?;
        Ok(key.to_owned())
    }
}

/// One level of nesting.
#[derive(Clone, Copy)]
struct Level<'r, 'b> {
    reader: &'r Reader<'b>,
    depth: usize,
}

impl Level<'_, '_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth.saturating_add(1);
        if depth > self.reader.bounds.depth {
            return Err(self.reader.refuse(Refusal::Depth));
        }
        Ok(Self { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        serde_json::Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.reader.take(footprint::string(value.len()), value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = source.next_element_seed(inner)? {
            self.reader.count()?;
            self.reader.grow(&mut items)?;
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut members = Map::new();
        while let Some(key) =
            source.next_key_seed(Key { reader: self.reader, nth: members.len() + 1 })?
        {
            self.reader.count()?;
            if members.contains_key(&key) {
                return Err(self.reader.refuse(Refusal::Duplicate(key.chars().take(64).collect())));
            }
            members.insert(key, source.next_value_seed(inner)?);
        }
        Ok(Value::Object(members))
    }
}

/// Converts a position of the parser, which counts columns in bytes from 1, and 0 right after a
/// line break.
fn position(text: &str, line: usize, column: usize) -> Position {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let offset = before.saturating_add(column.saturating_sub(1)).min(text.len());
    Position { offset, line: line.max(1), column: column.max(1) }
}

/// Returns the message of the parser without its trailing " at line 1 column 2".
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rfind(" at line ").and_then(|end| message.get(..end)).unwrap_or(&message).to_owned()
}

#[cfg(test)]
mod tests;
