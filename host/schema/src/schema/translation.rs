//! Translates patterns of JSON Schema (ECMA-262) for the engine.
//!
//! `jsonschema_regex` replaces one escape such as `\d` or `\cA` at a time, and parses the whole
//! pattern again after each: 2,045 of them took 38 s. So these escapes are replaced here first, all
//! in one pass.

use std::iter::Peekable;
use std::str::Chars;

/// A pattern without escapes that take a pass of their own, outside of brackets.
pub(super) struct Prepared {
    pub(super) text: String,
    /// The number of replaced escapes.
    pub(super) replaced: usize,
}

/// Replaces the escapes of classes outside of brackets, and those of control characters.
pub(super) fn prepare(pattern: &str) -> Prepared {
    let mut prepared = Prepared { text: String::with_capacity(pattern.len()), replaced: 0 };
    let mut is_in_brackets = false;
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\\' => prepared.escape(&mut rest, is_in_brackets),
            '[' | ']' => {
                is_in_brackets = next == '[';
                prepared.text.push(next);
            }
            _ => prepared.text.push(next),
        }
    }
    prepared
}

/// Returns the pattern in the syntax of the engine, or `None` if it has no translation.
pub(super) fn translate(pattern: &str) -> Option<String> {
    let prepared = prepare(pattern).text;
    jsonschema_regex::to_rust_regex(&prepared).ok().map(std::borrow::Cow::into_owned)
}

impl Prepared {
    /// Copies or replaces an escape, whose backslash has been read.
    fn escape(&mut self, rest: &mut Peekable<Chars<'_>>, is_in_brackets: bool) {
        let Some(kind) = rest.next() else { return self.text.push('\\') };
        if let Some(class) = class(kind).filter(|_| !is_in_brackets) {
            self.text.push_str(class);
            self.replaced += 1;
        } else if let Some(letter) =
            rest.next_if(|letter| kind == 'c' && letter.is_ascii_alphabetic())
        {
            // The control characters have the numbers of their letters.
            self.text.push(char::from(letter as u8 % 32));
            self.replaced += 1;
        } else {
            self.text.extend(['\\', kind]);
        }
    }
}

/// Returns the class in brackets that an escape stands for. White space is that of ECMA-262.
fn class(escape: char) -> Option<&'static str> {
    Some(match escape {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[A-Za-z0-9_]",
        'W' => "[^A-Za-z0-9_]",
        's' => {
            r"[\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]"
        }
        'S' => {
            r"[^\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use regex_automata::meta::Regex;

    /// Patterns with each escape, inside and outside of brackets, and with misleading brackets.
    const PATTERNS: [&str; 16] = [
        r"^\d\D\w\W\s\S$",
        r"^[\d\W]+$",
        r"^[^\s]\S$",
        r"\\d\d",
        r"\[\d\]\d",
        r"[]\d]\d",
        r"[[\d]\d",
        r"[\]\d]\d",
        r"^\cJ[\cA-\cZ]$",
        r"\c",
        r"\c1",
        r"(?:\s\S){0}x",
        r"^(?<name>\d)\b\w\B$",
        r"a\",
        r"\d{2,3}\s*\w+?",
        r"[a\-\d]-\d",
    ];

    #[test]
    fn prepared_pattern_matches_the_same_texts() {
        let texts = [
            "1a_ \t",
            "1x é\u{a0}b",
            "x",
            "5]",
            "[5]7",
            "]5]5",
            "\n\u{1}",
            "12 ab",
            "1a",
            "a-1",
            "d5",
            "\\d7",
            "\u{feff}\u{2028}",
            "\u{180e}\u{85}",
            "--1",
            "",
        ];
        for pattern in PATTERNS {
            let prepared = prepare(pattern).text;
            let [own, direct] = [&prepared, pattern].map(jsonschema_regex::to_rust_regex);
            assert_eq!(own.is_ok(), direct.is_ok(), "{pattern}");
            let (Ok(own), Ok(direct)) = (own, direct) else { continue };
            let [own, direct] = [own, direct].map(|pattern| Regex::new(&pattern).ok());
            assert_eq!(own.is_some(), direct.is_some(), "{pattern}");
            let (Some(own), Some(direct)) = (own, direct) else { continue };
            for text in texts {
                assert_eq!(own.is_match(text), direct.is_match(text), "{pattern} with {text:?}");
            }
        }
    }

    #[test]
    fn each_class_holds_the_same_characters() {
        for escape in [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"] {
            let direct = jsonschema_regex::to_rust_regex(escape).unwrap();
            let regexes = [translate(escape).unwrap(), direct.into_owned()];
            let [own, direct] = regexes.map(|pattern| Regex::new(&pattern).unwrap());
            for character in '\0'..=char::MAX {
                let text = character.encode_utf8(&mut [0; 4]).to_owned();
                assert_eq!(own.is_match(&text), direct.is_match(&text), "{escape} {character:?}");
            }
        }
    }

    #[test]
    fn nothing_is_left_that_takes_a_pass_of_its_own() {
        let many = r"\d\D\w\W\s\S\cA".repeat(200);
        let Prepared { text, replaced } = prepare(&many);
        assert_eq!((replaced, text.contains(r"\d"), text.contains(r"\c")), (1_400, false, false));
    }
}
