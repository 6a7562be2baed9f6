//! Escapes, which begin with a backslash.

use super::class::Class;
use super::{BACK_REFERENCE, Rest};

/// The meaning of an escape.
pub(super) enum Escape {
    /// `\b`, between a word and something else. In brackets it is the backspace.
    Boundary,
    /// `\B`.
    NoBoundary,
    /// One code point, maybe half of a surrogate pair.
    Character(u32),
    /// A class such as `\d` or `\p{L}`.
    Class(Class),
}

impl Escape {
    /// Reads an escape, whose backslash has been read.
    pub(super) fn read(rest: &mut Rest<'_>) -> Result<Self, &'static str> {
        let kind = rest.next().ok_or("it ends with a backslash")?;
        Ok(match kind {
            'b' => Self::Boundary,
            'B' => Self::NoBoundary,
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => Self::Class(Class::perl(kind)),
            'p' | 'P' => Self::Class(property(kind, rest)?),
            't' => Self::of('\t'),
            'n' => Self::of('\n'),
            'v' => Self::of('\u{b}'),
            'f' => Self::of('\u{c}'),
            'r' => Self::of('\r'),
            '0' if !rest.peek().is_some_and(|next| next.is_ascii_digit()) => Self::of('\0'),
            '0' => return Err("it has an octal escape; write `\\xHH`"),
            '1'..='9' | 'k' => return Err(BACK_REFERENCE),
            'c' => Self::Character(control(rest)?),
            'x' => Self::Character(hexadecimal(rest, 2).ok_or(
                "an escape `\\x` does not have exactly two hexadecimal digits; write `\\u{…}` for more",
            )?),
            'u' => Self::Character(code_point(rest)?),
            letter if letter.is_ascii_alphabetic() => {
                return Err("it has an escape of a letter that has no meaning in ECMA-262");
            }
            itself => Self::of(itself),
        })
    }

    fn of(character: char) -> Self {
        Self::Character(character.into())
    }
}

/// Reads the letter of `\cA`. The control characters have the numbers of their letters.
fn control(rest: &mut Rest<'_>) -> Result<u32, &'static str> {
    let letter = rest.next().filter(char::is_ascii_alphabetic);
    letter.map(|letter| u32::from(letter) % 32).ok_or("an escape `\\c` has no letter")
}

/// Reads exactly this many hexadecimal digits.
fn hexadecimal(rest: &mut Rest<'_>, count: usize) -> Option<u32> {
    let (digits, after) = rest.0.split_at_checked(count)?;
    let code = hexadecimal_number(digits)?;
    rest.0 = after;
    Some(code)
}

fn hexadecimal_number(digits: &str) -> Option<u32> {
    let are_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    are_digits.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// Reads the rest of `\uHHHH`, of a pair of these, or of `\u{H…}`.
fn code_point(rest: &mut Rest<'_>) -> Result<u32, &'static str> {
    const INVALID: &str = "an escape `\\u` is not of the form `\\uHHHH` or `\\u{H…}`, up to 10FFFF";
    if rest.take('{') {
        let code = rest.until('}').and_then(hexadecimal_number);
        return code.filter(|code| *code <= char::MAX.into()).ok_or(INVALID);
    }
    let first = hexadecimal(rest, 4).ok_or(INVALID)?;
    let mut ahead = *rest;
    if (0xd800..0xdc00).contains(&first) && ahead.take('\\') && ahead.take('u') {
        let second = hexadecimal(&mut ahead, 4).filter(|half| (0xdc00..0xe000).contains(half));
        if let Some(second) = second {
            *rest = ahead;
            return Ok(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
        }
    }
    Ok(first)
}

/// Reads the name of a Unicode property. The engine knows which names exist.
fn property(kind: char, rest: &mut Rest<'_>) -> Result<Class, &'static str> {
    let is_name = |name: &&str| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'='))
    };
    let name = if rest.take('{') { rest.until('}').filter(is_name) } else { None };
    let name = name.ok_or("a property is not of the form `\\p{Name}` or `\\p{Name=Value}`")?;
    Ok(Class::property(format!("\\{kind}{{{name}}}")))
}
