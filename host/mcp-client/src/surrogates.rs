//! Halves of surrogate pairs in the text of a message. JavaScript writes one when a text is cut
//! between the halves of a character, and no parser here accepts it.

use std::borrow::Cow;

/// The length of an escaped code unit, a backslash, `u` and four digits, in bytes.
const UNIT: usize = 6;

/// Returns the text of a JSON value in which U+FFFD replaces each half of a surrogate pair that
/// lacks the other half.
pub(crate) fn paired(text: &str) -> Cow<'_, str> {
    let mut paired = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let (first, second) = (unit(text, at), unit(text, at + UNIT));
        let length = match (first, second) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 2 * UNIT,
            (Some(0xD800..=0xDFFF), _) => {
                paired.push_str(&text[kept..at]);
                paired.push_str("\\ufffd");
                kept = at + UNIT;
                UNIT
            }
            (Some(_), _) => UNIT,
            // The escaped character may be a backslash.
            (None, _) => 2,
        };
        at += length;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    paired.push_str(&text[kept..]);
    Cow::Owned(paired)
}

/// Returns the code unit that is escaped at this place.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + UNIT)?.strip_prefix("\\u")?;
    let are_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| are_hexadecimal)
}

#[cfg(test)]
mod tests {
    use super::paired;

    #[test]
    fn lone_half_is_replaced_and_a_pair_is_kept() {
        for (text, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""a\ude00b""#, r#""a\ufffdb""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
        ] {
            assert_eq!(paired(text), expected);
        }
        for text in [
            "",
            r#""\ud83d\ude00""#,
            r#""\\ud83d""#,
            r#""\u00e4\n\\""#,
            r#""\ud83""#,
            r#""\u+123""#,
            "\\",
            "\\\u{e4}",
        ] {
            assert_eq!(paired(text), text);
        }
    }
}
