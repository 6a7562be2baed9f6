//! The spellings of a secret, as sequences of symbols, and the symbols that a text begins with. An
//! encoder decides for each character whether it escapes it, so that each is read in all its forms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// A part of a spelling, in any of its forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Symbol {
    /// A character of the secret, as it is, percent-encoded, or escaped for JSON or HTML.
    Character(char),
    /// A character of the standard alphabet of Base64, or of the alphabet for addresses. `+` and
    /// `/` may be escaped as well.
    Base64(char),
}

/// One sequence of symbols that spells a secret.
pub(super) type Spelling = Box<[Symbol]>;

/// Whether a text has kept the case of its letters, or is in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Kept,
    Lost,
}

/// One of the symbols that a text may begin with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) symbol: Symbol,
    /// The length of its form, in bytes.
    pub(super) length: usize,
    /// The end of a line comes before it, and counts towards the length.
    pub(super) is_on_next_line: bool,
}

/// All symbols that a text may begin with.
pub(super) struct Readings {
    pub(super) found: Vec<Reading>,
    case: Case,
    /// The length of the end of a line before the symbols that are read.
    line_end: usize,
}

/// The bytes that begin the escapes of a character.
pub(super) const ESCAPES: [u8; 3] = *br"%\&";

/// The ends of a line inside of Base64, each with the carriage returns that may come before it: as
/// it is, or escaped for JSON, an address or HTML.
const LINE_ENDS: [(&[&str], &[&str]); 4] = [
    (&["\r"], &["\n"]),
    (&[r"\r", r"\\r"], &[r"\n", r"\\n"]),
    (&["%0d", "%0D"], &["%0a", "%0A"]),
    (&["&#13;"], &["&#10;"]),
];
/// The greatest number of spaces and tabs that indent the next line.
const INDENT: usize = 4;
/// The length of the longest end of a line with the indent, in bytes.
const LONGEST_LINE_END: usize = "&#13;&#10;".len() + INDENT;

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

/// Returns all spellings of a secret.
pub(super) fn spellings(secret: &str) -> impl Iterator<Item = Spelling> {
    let characters = secret.chars().map(Symbol::Character).collect();
    [characters].into_iter().chain((0..3).map(|offset| base64(secret.as_bytes(), offset)))
}

/// The characters of Base64 that the secret alone determines, where it begins `offset` bytes after
/// a group of three.
fn base64(secret: &[u8], offset: usize) -> Spelling {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(secret);
    // Each character holds six bits. Those with bits of other bytes are cut off.
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    let text = STANDARD_NO_PAD.encode(&padded);
    text.chars().take(last).skip(first).map(Symbol::Base64).collect()
}

/// Returns the greatest length of a text that a spelling matches, in bytes.
pub(super) fn longest(spelling: &[Symbol]) -> usize {
    let longest = |symbol: &Symbol| match symbol {
        Symbol::Base64(letter) if letter.is_ascii_alphanumeric() => LONGEST_LINE_END + 1,
        Symbol::Base64(_) => LONGEST_LINE_END + "&#x00002B;".len(),
        // Percent-encoded twice, or as a number in HTML, such as `&#00001234;`.
        Symbol::Character(character) => (character.len_utf8() * "%25FF".len()).max(11),
    };
    spelling.iter().map(longest).sum()
}

impl Symbol {
    /// Returns the bytes that the forms of the symbol begin with.
    pub(super) fn first_bytes(self) -> impl Iterator<Item = u8> {
        let mut utf8 = [0; 4];
        let (Self::Character(character) | Self::Base64(character)) = self;
        character.encode_utf8(&mut utf8);
        let other = match self {
            Self::Character(' ') => b'+',
            Self::Base64('+') => b'-',
            Self::Base64('/') => b'_',
            _ => utf8[0],
        };
        [utf8[0], other].into_iter().chain(ESCAPES)
    }
}

impl Readings {
    pub(super) fn new(case: Case) -> Self {
        Self { found: Vec::new(), case, line_end: 0 }
    }

    /// Reads the beginning of a text.
    pub(super) fn read(&mut self, text: &[u8]) {
        self.found.clear();
        self.line_end = 0;
        self.read_symbols(text);
        if let Some(rest) = after_line_end(text) {
            self.line_end = text.len() - rest.len();
            self.read_symbols(rest);
        }
    }

    fn read_symbols(&mut self, text: &[u8]) {
        self.read_unescaped(text);
        match text.first() {
            Some(b'%') => self.read_percent(text),
            Some(b'\\') => self.read_backslashes(text),
            Some(b'&') => self.read_entity(text),
            _ => {}
        }
    }

    fn add(&mut self, symbol: Symbol, length: usize) {
        let is_on_next_line = self.line_end > 0;
        if !is_on_next_line || matches!(symbol, Symbol::Base64(_)) {
            self.found.push(Reading { symbol, length: self.line_end + length, is_on_next_line });
        }
    }

    fn add_escape(&mut self, character: char, length: usize) {
        self.add(Symbol::Character(character), length);
        if matches!(character, '+' | '/') {
            self.add(Symbol::Base64(character), length);
        }
    }

    fn read_unescaped(&mut self, text: &[u8]) {
        let Some((character, length)) = first_character(text) else { return };
        self.add_escape(character, length);
        match character {
            '+' => self.add(Symbol::Character(' '), 1),
            '-' => self.add(Symbol::Base64('+'), 1),
            '_' => self.add(Symbol::Base64('/'), 1),
            letter if letter.is_ascii_alphanumeric() => self.add(Symbol::Base64(letter), 1),
            _ => {}
        }
        if self.case == Case::Lost && character.is_ascii_lowercase() {
            self.add(Symbol::Character(character.to_ascii_uppercase()), 1);
            self.add(Symbol::Base64(character.to_ascii_uppercase()), 1);
        }
    }

    /// Reads a character in percent-encoding, of which each byte may be encoded twice, as in an
    /// address that is part of another.
    fn read_percent(&mut self, text: &[u8]) {
        for prefix in ["%", "%25"] {
            let Some((first, mut rest)) = percent_byte(text, prefix) else { continue };
            let mut utf8 = [first, 0, 0, 0];
            for byte in utf8.iter_mut().take(utf8_length(first)).skip(1) {
                let once = percent_byte(rest, "%").filter(|(byte, _)| !byte.is_ascii());
                let Some((next, after)) = once.or_else(|| percent_byte(rest, "%25")) else { break };
                (*byte, rest) = (next, after);
            }
            if let Some((character, _)) = first_character(&utf8) {
                self.add_escape(character, text.len() - rest.len());
            }
        }
    }

    /// Reads an escape of JSON. The text may be part of another one, which doubles the backslash.
    fn read_backslashes(&mut self, text: &[u8]) {
        for (count, byte) in text.iter().enumerate().take(4).skip(1) {
            match byte {
                b't' => self.add_escape('\t', count + 1),
                byte if byte.is_ascii_punctuation() => self.add_escape((*byte).into(), count + 1),
                _ => {}
            }
            if *byte != b'\\' {
                break;
            }
        }
        if let Some((character, rest)) = utf16_character(text) {
            self.add_escape(character, text.len() - rest.len());
        }
    }

    fn read_entity(&mut self, text: &[u8]) {
        match text {
            [_, b'#', b'x' | b'X', ..] => self.read_number(text, 3, 16),
            [_, b'#', ..] => self.read_number(text, 2, 10),
            [_, name @ ..] => {
                for (character, of) in NAMES {
                    if begins_with(name, of, self.case) {
                        self.add_entity(character, text, 1 + of.len());
                    }
                }
            }
            [] => {}
        }
    }

    /// Reads the number of a character, with at most four zeros before it. It may end before each
    /// digit, as the next one may be part of the secret.
    fn read_number(&mut self, text: &[u8], begin: usize, radix: u32) {
        let zeros = text.iter().skip(begin).take(4).take_while(|byte| **byte == b'0').count();
        let mut code = 0;
        for (index, byte) in text.iter().enumerate().skip(begin + zeros) {
            let Some(digit) = char::from(*byte).to_digit(radix) else { break };
            code = code * radix + digit;
            if code == 0 || code > u32::from(char::MAX) {
                break;
            }
            if let Some(character) = char::from_u32(code) {
                self.add_entity(character, text, index + 1);
            }
        }
    }

    /// Adds a character without the semicolon too: browsers read numbers and some names so.
    fn add_entity(&mut self, character: char, text: &[u8], length: usize) {
        self.add_escape(character, length);
        if text.get(length) == Some(&b';') {
            self.add_escape(character, length + 1);
        }
    }
}

/// Returns true if a text begins with another. Most texts differ in the first byte: a call to
/// compare memory would take longer.
fn begins_with(text: &[u8], beginning: &str, case: Case) -> bool {
    let is_equal = |(byte, other): (&u8, u8)| match case {
        Case::Kept => *byte == other,
        Case::Lost => byte.eq_ignore_ascii_case(&other),
    };
    beginning.len() <= text.len() && text.iter().zip(beginning.bytes()).all(is_equal)
}

/// Returns the rest of a text that begins with one of these.
fn after<'t>(text: &'t [u8], beginnings: &[&str]) -> Option<&'t [u8]> {
    let found = beginnings.iter().find(|beginning| begins_with(text, beginning, Case::Kept))?;
    text.get(found.len()..)
}

/// Returns the rest of a text that begins with the end of a line, after the indent.
fn after_line_end(text: &[u8]) -> Option<&[u8]> {
    if text.first()?.is_ascii_alphanumeric() {
        return None;
    }
    let rest = LINE_ENDS
        .iter()
        .find_map(|(before, end)| after(after(text, before).unwrap_or(text), end))?;
    let is_indent = |byte: &&u8| matches!(byte, b' ' | b'\t');
    rest.get(rest.iter().take(INDENT).take_while(is_indent).count()..)
}

/// Returns the length in UTF-8 of a character with this first byte.
fn utf8_length(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

/// Returns the character that a text in UTF-8 begins with, and its length.
fn first_character(text: &[u8]) -> Option<(char, usize)> {
    let first = *text.first()?;
    if first.is_ascii() {
        return Some((first.into(), 1));
    }
    let length = utf8_length(first);
    let character = std::str::from_utf8(text.get(..length)?).ok()?.chars().next()?;
    Some((character, length))
}

/// Reads a byte in percent-encoding, and returns the rest of the text.
fn percent_byte<'t>(text: &'t [u8], prefix: &str) -> Option<(u8, &'t [u8])> {
    let (code, rest) = hexadecimal::<2>(after(text, &[prefix])?)?;
    Some((u8::try_from(code).ok()?, rest))
}

/// Reads a character that JSON escapes with one number or two, and returns the rest of the text.
fn utf16_character(text: &[u8]) -> Option<(char, &[u8])> {
    let unit = |text| {
        let (unit, rest) = hexadecimal::<4>(after(text, &[r"\u", r"\\u", r"\\\u"])?)?;
        Some((u16::try_from(unit).ok()?, rest))
    };
    let (first, rest) = unit(text)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, rest));
    }
    let (second, rest) = unit(rest)?;
    Some((char::decode_utf16([first, second]).next()?.ok()?, rest))
}

/// Reads a number of `WIDTH` hexadecimal digits of either case, and returns the rest of the text.
fn hexadecimal<const WIDTH: usize>(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_first_chunk::<WIDTH>()?;
    let add = |number, byte: &u8| Some(number * 16 + char::from(*byte).to_digit(16)?);
    Some((digits.iter().try_fold(0, add)?, rest))
}
