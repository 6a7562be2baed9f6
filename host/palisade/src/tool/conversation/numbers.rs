//! Sets numbers aside that the parser cannot hold, such as `1e400`, so that only the affected call
//! fails.

use super::{REPLY, ReplyError, ToolUse};
use crate::tool::CallInput;
use crate::tool::json::{JsonBounds, JsonError, parse_bounded};
use serde::de::IgnoredAny;
use serde_json::{Number, Value};

/// The prefix of a string that stands for a number: a quote and a Unicode noncharacter, which text
/// does not contain. A model that writes it garbles only its own call.
const ASIDE: &str = "\"\u{fdd0}";

/// A parsed reply, with a flag for numbers set aside.
pub(super) struct Parsed {
    pub(super) value: Value,
    has_aside: bool,
}

/// Parses a reply within bounds. A number out of range is not an error here.
pub(super) fn parse(text: &str) -> Result<Parsed, ReplyError> {
    let refused = match parse_bounded(text, REPLY) {
        Ok(value) => return Ok(Parsed { value, has_aside: false }),
        Err(error) => error,
    };
    if !matches!(&refused, JsonError::Syntax { reason, .. } if reason.contains("out of range")) {
        return Err(refused.into());
    }
    // The length was checked above, and the markers add a few bytes per number.
    match parse_bounded(&without_numbers(text), JsonBounds { bytes: usize::MAX, ..REPLY }) {
        Ok(value) => Ok(Parsed { value, has_aside: true }),
        // Offsets in the rewritten text do not apply to the original, so the first error is
        // returned.
        Err(JsonError::Syntax { .. }) => Err(refused.into()),
        Err(other) => Err(other.into()),
    }
}

impl Parsed {
    /// Restores the numbers as written: the dispatcher parses each input separately and reports the
    /// error in that call.
    pub(super) fn put_back(&self, uses: &mut [ToolUse]) {
        for one in uses.iter_mut().filter(|_| self.has_aside) {
            if let CallInput::Text(text) = &mut one.input {
                *text = with_numbers(text);
            }
        }
    }
}

/// Returns the text with each number that is out of range turned into a marked string.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, token) = rest.split_at(at);
        let length =
            if token.starts_with('"') { string_length(token) } else { number_length(token) };
        let (token, after) = token.split_at(length);
        out.push_str(before);
        if is_out_of_range(token) {
            out.extend([ASIDE, token, "\""]);
        } else {
            out.push_str(token);
        }
        rest = after;
    }
    out + rest
}

fn with_numbers(input: &str) -> String {
    let mut parts = input.split(ASIDE);
    let mut out = parts.next().unwrap_or_default().to_owned();
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

    #[test]
    fn out_of_range_numbers_are_restored_verbatim() {
        let text = r#"{"a":[1e400,-2,"1e400","\"1e999"],"b":-1E+999,"c":1.5e3}"#;
        let aside = without_numbers(text);
        assert!(serde_json::from_str::<Value>(&aside).is_ok(), "{aside}");
        assert_eq!(aside.matches(ASIDE).count(), 2, "{aside}");
        assert_eq!(with_numbers(&aside), text);
    }

    #[test]
    fn invalid_number_is_left_unchanged() {
        for text in ["01e400", "1e400-5", "1.e400", "-", "1e", "\"1e400", "1e5", "[1e400x"] {
            let is_changed = without_numbers(text) != text;
            assert_eq!(is_changed, text == "[1e400x", "{text}");
        }
        assert!(parse("[1e400x]").is_err());
    }
}
