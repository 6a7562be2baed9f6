//! Text that others wrote, made fit to be shown or checked for what hides in it.

/// Whether a character could hide or reorder text for a reader: controls other than tab and newline, bidirectional marks, soft hyphens, annotations, tags, and
/// zero-width characters.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    (c.is_control() && c != '\t' && c != '\n')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{fff9}'..='\u{fffb}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes what [`is_deceptive`], so that the text shows on a terminal as what it is.
#[must_use]
pub fn visible(text: &str) -> String {
    if !text.contains(is_deceptive) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_deceptive(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}

/// The same for a JSON text, in JSON's own escapes: it stays the text of the same value, and on a terminal or in a reader of lines it is one line that
/// draws nothing.
#[must_use]
pub fn visible_json(json: &str) -> String {
    let mut units = [0; 2];
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        if is_deceptive(c) {
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
        out
    })
}

/// Cuts `text` to at most `max` bytes at a character's border.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Shows a text on one line of at most `max` characters, its middle left out with a count where it is longer.
#[must_use]
pub fn elided(text: &str, max: usize) -> String {
    let line = visible(text).replace('\n', "\\n").replace('\t', "\\t");
    let count = line.chars().count();
    if count <= max {
        return line;
    }
    let half = max / 2;
    let head: String = line.chars().take(half).collect();
    let tail: String = line.chars().skip(count - half).collect();
    format!("{head} … {} characters … {tail}", count - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_deceive_a_reader_is_shown_as_an_escape() {
        assert_eq!(visible("a\u{1b}[2Jb\u{202e}c\nd"), "a\\u{1b}[2Jb\\u{202e}c\nd");
    }

    #[test]
    fn a_json_text_is_escaped_in_jsons_own_way_and_means_the_same() {
        let value = serde_json::json!({"a\u{202e}": "b\u{2028}\u{e0041}\u{7f}\u{85}c"});
        let escaped = visible_json(&value.to_string());
        assert_eq!(escaped, r#"{"a\u202e":"b\u2028\udb40\udc41\u007f\u0085c"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).ok(), Some(value));
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("a", 9), "a");
    }

    #[test]
    fn a_long_text_keeps_its_ends_and_says_what_is_missing() {
        assert_eq!(elided("abcdefghij", 4), "ab … 6 characters … ij");
        assert_eq!(elided("ab\ncd", 10), "ab\\ncd");
    }
}
