//! Applies the bounds of JSON texts to values that were not read from text, so that both ways in
//! have the same limits.

use super::{JsonBounds, JsonError, footprint};
use serde_json::Value;

impl JsonBounds {
    /// Checks a value against the bounds. Its length is that of its text without spaces and
    /// escapes. Returns the approximate memory of the value, in bytes.
    ///
    /// # Errors
    ///
    /// [`JsonError::TooMuch`].
    pub fn admit(self, value: &Value) -> Result<u64, JsonError> {
        let mut left = Left { bytes: self.bytes, members: self.members, footprint: 0 };
        let taken = left.take(value, self.depth);
        taken.map_err(|what| JsonError::TooMuch { what: what.words(), max: what.of(self) })?;
        Ok(left.footprint)
    }
}

/// The exceeded bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Much {
    Bytes,
    Levels,
    Members,
}

impl Much {
    fn words(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Levels => "levels of arrays and objects",
            Self::Members => "elements and members",
        }
    }

    fn of(self, bounds: JsonBounds) -> usize {
        match self {
            Self::Bytes => bounds.bytes,
            Self::Levels => bounds.depth,
            Self::Members => bounds.members,
        }
    }
}

/// The remaining bounds.
struct Left {
    bytes: usize,
    members: usize,
    /// The memory of the values seen so far, in bytes.
    footprint: u64,
}

impl Left {
    /// Subtracts a value, which may have `levels` levels of nesting.
    fn take(&mut self, value: &Value, levels: usize) -> Result<(), Much> {
        self.footprint += footprint::outside(value);
        match value {
            Value::Null | Value::Bool(true) => self.bytes(4),
            Value::Bool(false) => self.bytes(5),
            Value::Number(number) if number.is_f64() => self.bytes(number.to_string().len()),
            Value::Number(number) => self.bytes(digits(number)),
            Value::String(text) => self.bytes(text.len() + 2),
            Value::Array(elements) => {
                let inner = self.open(levels)?;
                elements
                    .iter()
                    .try_for_each(|element| self.member(0).and_then(|()| self.take(element, inner)))
            }
            Value::Object(members) => {
                let inner = self.open(levels)?;
                members.iter().try_for_each(|(name, value)| {
                    self.member(name.len() + 3).and_then(|()| self.take(value, inner))
                })
            }
        }
    }

    fn open(&mut self, levels: usize) -> Result<usize, Much> {
        self.bytes(2)?;
        levels.checked_sub(1).ok_or(Much::Levels)
    }

    /// Subtracts one member, with the length of its name and of the comma after it.
    fn member(&mut self, name: usize) -> Result<(), Much> {
        self.members = self.members.checked_sub(1).ok_or(Much::Members)?;
        self.bytes(name + 1)
    }

    fn bytes(&mut self, bytes: usize) -> Result<(), Much> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(Much::Bytes)?;
        Ok(())
    }
}

fn digits(number: &serde_json::Number) -> usize {
    let of = |magnitude: u64| magnitude.checked_ilog10().map_or(1, |more| more as usize + 1);
    match (number.as_u64(), number.as_i64()) {
        (Some(whole), _) => of(whole),
        (None, Some(negative)) => 1 + of(negative.unsigned_abs()),
        (None, None) => number.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_bounded;
    use serde_json::json;

    const BOUNDS: JsonBounds = JsonBounds { bytes: 60, depth: 3, members: 6 };

    #[test]
    fn value_and_text_have_the_same_footprint() {
        let bounds = JsonBounds { bytes: 1 << 20, depth: 9, members: 100_000 };
        let many: serde_json::Map<String, Value> =
            (0..1000).map(|at| (format!("k{at}"), json!([at]))).collect();
        for value in [
            json!([{"": 0}, {"": 0}, {"a": ["b", "c"]}]),
            json!([]),
            json!({}),
            Value::Object(many),
        ] {
            let text = value.to_string();
            let counted = bounds.admit(&value).map_err(|error| error.to_string());
            assert_eq!(counted, Ok(footprint::of(&value)), "{text}");
            let read = crate::json::Json::parse(&text, bounds).map(|json| json.footprint());
            assert_eq!(read.map_err(|error| error.to_string()), counted, "{text}");
            let (_, kept) = crate::json::parse_within(&text, bounds, &crate::budget::Unlimited)
                .unwrap_or_default();
            // The incremental account of a growing array omits the headers of its allocations.
            assert!(counted.is_ok_and(|bytes| bytes.abs_diff(kept) <= bytes / 4), "{text}: {kept}");
        }
    }

    #[test]
    fn value_and_text_have_the_same_bounds() {
        for value in [
            json!(null),
            json!([[[]]]),
            json!([[[1]]]),
            json!([[[[]]]]),
            json!({"a": {"b": {"c": {}}}}),
            json!([1, 2, 3, 4, 5, 6]),
            json!([1, 2, 3, 4, 5, 6, 7]),
            json!({"a": [1, 2], "b": 3, "c": 4, "d": 5}),
            json!("x".repeat(58)),
            json!("x".repeat(59)),
        ] {
            assert_eq!(
                BOUNDS.admit(&value).is_ok(),
                parse_bounded(&value.to_string(), BOUNDS).is_ok(),
                "{value}"
            );
        }
    }

    #[test]
    fn counted_bytes_equal_the_text_length() {
        for value in [
            json!(0),
            json!(-10),
            json!(u64::MAX),
            json!(1.5),
            json!(false),
            json!({"a": ["b", true, null]}),
            json!([9, 10]),
        ] {
            let bytes = value.to_string().len();
            let of = |bytes| JsonBounds { bytes, ..BOUNDS }.admit(&value).is_ok();
            assert!(!of(bytes - 1) && of(bytes + 2), "{value}");
        }
    }
}
