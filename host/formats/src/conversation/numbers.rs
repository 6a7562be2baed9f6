//! Replaces numbers that the parser cannot hold, such as `1e400`, by placeholders, so that only the
//! affected call fails.

use super::{REPLY_BOUNDS, ReplyError, ToolUse};
use palisade_schema::budget::{Exhausted, Purse};
use palisade_schema::json::{JsonBounds, JsonError, parse_within};
use serde::de::IgnoredAny;
use serde_json::{Number, Value};

/// The prefix of a string that stands for a number: a quote and a Unicode noncharacter, which text
/// does not contain. A model that writes it garbles only its own call.
const PLACEHOLDER: &str = "\"\u{fdd0}";

/// A parsed reply, in which strings may stand for numbers.
pub(super) struct Parsed {
    pub(super) value: Value,
    /// The memory of the value, which the purse holds.
    pub(super) memory: u64,
    has_placeholders: bool,
}

/// Parses a reply within bounds. A number out of range is not an error here.
pub(super) fn parse(text: &str, purse: &mut Purse<'_>) -> Result<Parsed, ReplyError> {
    let refused = match parse_value(text, REPLY_BOUNDS, purse) {
        Ok((value, memory)) => return Ok(Parsed { value, memory, has_placeholders: false }),
        Err(error) => error,
    };
    if !matches!(&refused, JsonError::Syntax { reason, .. } if reason.contains("out of range")) {
        return Err(refused.into());
    }
    // The length was checked above. A placeholder adds less than the length of its number.
    let copy = 2 * text.len() as u64;
    purse.take(copy)?;
    let bounds = JsonBounds { bytes: usize::MAX, ..REPLY_BOUNDS };
    let parsed = parse_value(&replace_numbers(text), bounds, purse);
    purse.put_back(copy);
    match parsed {
        Ok((value, memory)) => Ok(Parsed { value, memory, has_placeholders: true }),
        // Offsets in the rewritten text do not apply to the original, so the first error is
        // returned.
        Err(JsonError::Syntax { .. }) => Err(refused.into()),
        Err(other) => Err(other.into()),
    }
}

/// Parses a text, and puts the memory of its value into the purse.
fn parse_value(
    text: &str,
    bounds: JsonBounds,
    purse: &mut Purse<'_>,
) -> Result<(Value, u64), JsonError> {
    let (value, memory) = parse_within(text, bounds, purse.budget())?;
    purse.adopt(memory);
    Ok((value, memory))
}

impl Parsed {
    /// Restores the numbers of all inputs as written. Each input is parsed separately later, and
    /// the error is reported in that call.
    pub(super) fn restore(
        &self,
        tool_uses: &mut [ToolUse],
        purse: &mut Purse<'_>,
    ) -> Result<(), Exhausted> {
        for tool_use in tool_uses.iter_mut().filter(|_| self.has_placeholders) {
            let copy = tool_use.input.len() as u64;
            purse.take(copy)?;
            tool_use.input = restore_numbers(&tool_use.input);
            purse.put_back(copy);
        }
        Ok(())
    }

    /// Returns the reply. A number out of range is a string, because no value can hold it.
    pub(super) fn into_value(mut self) -> Value {
        if self.has_placeholders {
            strip_placeholders(&mut self.value);
        }
        self.value
    }
}

/// Removes the prefix of all placeholders. The bounds of a reply limit the depth.
fn strip_placeholders(value: &mut Value) {
    match value {
        Value::String(text) => {
            let prefix = PLACEHOLDER.trim_start_matches('"');
            if let Some(number) = text.strip_prefix(prefix) {
                *text = number.to_owned();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(strip_placeholders),
        Value::Object(object) => object.values_mut().for_each(strip_placeholders),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the text with a placeholder for each number that is out of range.
fn replace_numbers(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, token) = rest.split_at(at);
        let length =
            if token.starts_with('"') { string_length(token) } else { number_length(token) };
        let (token, after) = token.split_at(length);
        out.push_str(before);
        if is_out_of_range(token) {
            out.extend([PLACEHOLDER, token, "\""]);
        } else {
            out.push_str(token);
        }
        rest = after;
    }
    out + rest
}

fn restore_numbers(input: &str) -> String {
    let mut parts = input.split(PLACEHOLDER);
    let mut out = String::with_capacity(input.len());
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (number, after) = part.split_once('"').unwrap_or((part, ""));
        out.extend([number, after]);
    }
    out
}

/// Returns the length of a string with its quotes, or of the whole text if the string does not end.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().enumerate().skip(1).find(|(_, byte)| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

fn number_length(text: &str) -> usize {
    text.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(text.len())
}

/// Returns true if the token is a valid JSON number that the parser cannot hold.
fn is_out_of_range(token: &str) -> bool {
    !token.starts_with('"')
        && serde_json::from_str::<IgnoredAny>(token).is_ok()
        && serde_json::from_str::<Number>(token).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_schema::budget::Unlimited;

    #[test]
    fn numbers_out_of_range_are_replaced_and_restored() {
        let text = r#"{"a":[1e400,-2,"1e400","\"1e999"],"b":-1E+999,"c":1.5e3}"#;
        let replaced = replace_numbers(text);
        assert!(serde_json::from_str::<Value>(&replaced).is_ok(), "{replaced}");
        assert_eq!(replaced.matches(PLACEHOLDER).count(), 2, "{replaced}");
        assert_eq!(restore_numbers(&replaced), text);
    }

    #[test]
    fn invalid_numbers_stay_unchanged() {
        for text in ["01e400", "1e400-5", "1.e400", "-", "1e", "\"1e400", "1e5", "[1e400x"] {
            let is_changed = replace_numbers(text) != text;
            assert_eq!(is_changed, text == "[1e400x", "{text}");
        }
        assert!(parse("[1e400x]", &mut Purse::new(&Unlimited)).is_err());
    }
}
