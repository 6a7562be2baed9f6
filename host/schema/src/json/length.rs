//! The length of the text of a value, so that its memory is reserved before the text is made.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use super::text::Json;
use crate::budget::{Exhausted, Purse};

/// Returns the length of a value's JSON text, in bytes.
#[must_use]
pub fn text_length(value: &impl Serialize) -> usize {
    let mut length = Length(0);
    // Fails only for maps with keys that are not strings, whose text is not made either.
    let _ = serde_json::to_writer(&mut length, value);
    length.0
}

/// Returns the JSON text of a value, whose memory is taken from the purse first.
///
/// # Errors
///
/// Those of [`Purse::take`].
pub fn text_within(value: &Value, purse: &mut Purse<'_>) -> Result<String, Exhausted> {
    let length = text_length(value);
    purse.take(length as u64)?;
    let mut text = Vec::with_capacity(length);
    // Cannot fail: the keys of a value are strings.
    let _ = serde_json::to_writer(&mut text, value);
    Ok(String::from_utf8(text).unwrap_or_default())
}

/// A writer that counts.
struct Length(usize);

impl Write for Length {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0 += bytes.len();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Json {
    /// Converts a value as [`From`] does, with the memory of the text taken from the purse first.
    ///
    /// # Errors
    ///
    /// Those of [`Purse::take`].
    pub fn of_value_within(mut value: Value, purse: &mut Purse<'_>) -> Result<Self, Exhausted> {
        let footprint = Self::prepare(&mut value);
        let text = text_within(&value, purse)?;
        Ok(Self::of_text(text, footprint))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::budget::Unlimited;
    use serde_json::json;

    #[test]
    fn length_is_that_of_the_text() {
        for value in [json!(null), json!("\u{1}\"ü"), json!({"a": [1.5, {"b": []}], "c": true})] {
            let mut purse = Purse::new(&Unlimited);
            let text = text_within(&value, &mut purse).unwrap();
            assert_eq!((&text, text.len()), (&value.to_string(), text_length(&value)));
            assert_eq!(purse.keep(), text.len() as u64);
            let json = Json::of_value_within(value.clone(), &mut Purse::new(&Unlimited)).unwrap();
            assert_eq!(json, Json::from(value));
        }
    }
}
