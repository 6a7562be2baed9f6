//! The spellings of a secret, as regular expressions over bytes. An encoder decides for each
//! character whether it escapes it, so that each character matches in any of its forms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::fmt::Write as _;

/// The end of a line inside of Base64, as it is or escaped for JSON, HTML or an address, and the
/// indent of the next line, with their greatest length in bytes.
const LINE_END: (&str, usize) =
    (r"(?:(?:\r?\n|(?:\\{1,2}r)?\\{1,2}n|(?:%0[dD])?%0[aA]|(?:&#13;)?&#10;)[ \t]{0,4})?", 14);

/// The names of ASCII punctuation in HTML, where it has any, from the list of the HTML standard
/// ("named character references").
const NAMES: [(char, &str); 40] = [
    ('!', "excl"),
    ('"', "quot"),
    ('"', "QUOT"),
    ('#', "num"),
    ('$', "dollar"),
    ('%', "percnt"),
    ('&', "amp"),
    ('&', "AMP"),
    ('\'', "apos"),
    ('(', "lpar"),
    (')', "rpar"),
    ('*', "ast"),
    ('*', "midast"),
    ('+', "plus"),
    (',', "comma"),
    ('.', "period"),
    ('/', "sol"),
    (':', "colon"),
    (';', "semi"),
    ('<', "lt"),
    ('<', "LT"),
    ('=', "equals"),
    ('>', "gt"),
    ('>', "GT"),
    ('?', "quest"),
    ('@', "commat"),
    ('[', "lsqb"),
    ('[', "lbrack"),
    ('\\', "bsol"),
    (']', "rsqb"),
    (']', "rbrack"),
    ('^', "Hat"),
    ('_', "lowbar"),
    ('_', "UnderBar"),
    ('`', "grave"),
    ('{', "lcub"),
    ('{', "lbrace"),
    ('|', "verbar"),
    ('}', "rcub"),
    ('}', "rbrace"),
];

/// One family of spellings.
pub(super) struct Spelling {
    pub(super) pattern: String,
    /// The length of the longest text that it matches, in bytes.
    pub(super) longest: usize,
}

/// The forms of one character, of which one matches.
#[derive(Default)]
struct Forms {
    alternatives: Vec<String>,
    longest: usize,
}

impl Spelling {
    /// Returns all spellings of a secret.
    pub(super) fn all(secret: &str) -> impl Iterator<Item = Self> {
        let encoded = (0..3).map(|offset| Self::base64(secret.as_bytes(), offset));
        [Self::escaped(secret)].into_iter().chain(encoded.collect::<Vec<_>>())
    }

    /// Each character as it is, percent-encoded, or escaped for JSON or HTML.
    fn escaped(secret: &str) -> Self {
        let mut spelling = Self { pattern: String::new(), longest: 0 };
        for character in secret.chars() {
            spelling.add(&Forms::of(character));
        }
        spelling
    }

    /// The characters of Base64 that the secret alone determines, where it begins `offset` bytes
    /// after a group of three. They may be on several lines.
    fn base64(secret: &[u8], offset: usize) -> Self {
        let mut padded = vec![0; offset];
        padded.extend_from_slice(secret);
        // Each character holds six bits. Those with bits of other bytes are cut off.
        let first = (offset * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        let text = STANDARD_NO_PAD.encode(&padded);
        let mut spelling = Self { pattern: String::new(), longest: 0 };
        for (index, character) in text.chars().take(last).skip(first).enumerate() {
            if index > 0 {
                spelling.pattern.push_str(LINE_END.0);
                spelling.longest += LINE_END.1;
            }
            let mut forms = Forms::default();
            match character {
                '+' | '/' => {
                    forms.add_escapes(character);
                    forms.add_raw(if character == '+' { b"-" } else { b"_" });
                }
                letter => forms.add_raw(&[letter as u8]),
            }
            spelling.add(&forms);
        }
        spelling
    }

    fn add(&mut self, forms: &Forms) {
        let _ = write!(self.pattern, "(?:{})", forms.alternatives.join("|"));
        self.longest += forms.longest;
    }
}

impl Forms {
    fn of(character: char) -> Self {
        let mut forms = Self::default();
        forms.add_escapes(character);
        if character == ' ' {
            forms.add_raw(b"+");
        }
        forms
    }

    fn add(&mut self, pattern: String, longest: usize) {
        self.alternatives.push(pattern);
        self.longest = self.longest.max(longest);
    }

    fn add_raw(&mut self, bytes: &[u8]) {
        self.add(bytes.iter().map(|byte| format!(r"\x{byte:02X}")).collect(), bytes.len());
    }

    /// Adds a character as it is and in each of its escapes.
    fn add_escapes(&mut self, character: char) {
        let mut utf8 = [0; 4];
        let utf8 = character.encode_utf8(&mut utf8).as_bytes();
        self.add_raw(utf8);
        // Once or twice, as in an address that is part of another.
        let percent = utf8.iter().map(|byte| format!("%(?:25)?{}", hex(u32::from(*byte), 2)));
        self.add(percent.collect(), utf8.len() * 5);
        // A text in JSON may be part of another one.
        let backslashes = r"\\{1,3}";
        let mut utf16 = [0; 2];
        let utf16 = character.encode_utf16(&mut utf16);
        let units = utf16.iter().map(|unit| format!("{backslashes}u{}", hex(u32::from(*unit), 4)));
        self.add(units.collect(), utf16.len() * 8);
        if character.is_ascii_punctuation() {
            self.add(format!(r"{backslashes}\x{:02X}", character as u32), 4);
        }
        if character == '\t' {
            self.add(format!("{backslashes}t"), 4);
        }
        self.add_entities(character);
    }

    fn add_entities(&mut self, character: char) {
        let code = u32::from(character);
        let digits = hex(code, 1);
        // Browsers read a number and some names without the semicolon as well.
        self.add(format!("&#(?:[xX]0{{0,4}}{digits}|0{{0,4}}{code});?"), 16);
        for (_, name) in NAMES.iter().filter(|(of, _)| *of == character) {
            self.add(format!("&{name};?"), name.len() + 2);
        }
    }
}

/// Returns a pattern for a number in hexadecimal digits of either case.
fn hex(number: u32, width: usize) -> String {
    let digit = |digit: char| match digit {
        'a'..='f' => format!("[{digit}{}]", digit.to_ascii_uppercase()),
        digit => digit.to_string(),
    };
    format!("{number:0width$x}").chars().map(digit).collect()
}
