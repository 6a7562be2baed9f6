//! Text that others wrote, made fit to be shown or checked for what hides in it.

/// How much of a text is looked at in one go, in bytes.
const AT_A_GLANCE: usize = 64;

/// The first character that could hide or reorder text for a reader: controls other than tab and newline, marks that turn the direction, separators of lines,
/// annotations, and whatever shows as nothing where it stands.
#[must_use]
pub fn first_deceptive(text: &str) -> Option<char> {
    // What most texts are made of deceives nobody, and is told at a glance.
    let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n');
    // Each block to its end, which processors do for many bytes at once.
    let all_plain = |block: &[u8]| block.iter().fold(true, |all, byte| all & plain(byte));
    if text.as_bytes().chunks(AT_A_GLANCE).all(all_plain) { None } else { deceptive(text).next() }
}

/// Every such character of a text.
pub fn deceptive(text: &str) -> impl Iterator<Item = char> {
    judged(text).filter_map(|(c, deceives)| deceives.then_some(c))
}

/// Each character, and whether it deceives where it stands.
fn judged(text: &str) -> impl Iterator<Item = (char, bool)> {
    let (mut chars, mut before) = (text.chars().peekable(), None);
    std::iter::from_fn(move || {
        let c = chars.next()?;
        let deceives = is_deceptive(c) || (is_selector(c) && !selects(before, chars.peek()));
        before = Some(c);
        Some((c, deceives))
    })
}

/// The two that say whether a symbol is drawn as text or as a picture. Many emoji carry one; anywhere else they show as nothing.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// Whether a selector has something to select for: it stands directly behind a symbol, or makes a key of a digit with the mark that follows.
fn selects(before: Option<char>, after: Option<&char>) -> bool {
    match before {
        Some('0'..='9' | '#' | '*') => after == Some(&'\u{20e3}'),
        Some(c) => is_symbol(c),
        None => false,
    }
}

/// The blocks in which all symbols lie that Unicode gives a choice of, and nothing that is written in running text: `©`, `®`, arrows, signs, emoji.
fn is_symbol(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}'
        | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2934}'..='\u{2935}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}'
        | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Whether a character deceives wherever it stands.
fn is_deceptive(c: char) -> bool {
    (c.is_control() && c != '\t' && c != '\n')
        || is_invisible(c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}')
}

/// What fonts show as nothing, and the one letter that is blank by itself: the Braille pattern without dots. Not the two of [`is_selector`], for which it matters
/// where they stand.
fn is_invisible(c: char) -> bool {
    c == '\u{2800}' || (is_ignorable(c) && !matches!(c, '\u{fe0e}' | '\u{fe0f}'))
}

/// Unicode's `Default_Ignorable_Code_Point`: direction marks, joiners, tags, variation selectors, Hangul fillers. Fonts show them as nothing, and file systems that
/// do not tell letter case apart leave them out when they compare names.
#[must_use]
pub fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes what is [`deceptive`], so that the text shows on a terminal as what it is.
#[must_use]
pub fn visible(text: &str) -> String {
    if first_deceptive(text).is_none() {
        return text.to_owned();
    }
    judged(text).fold(String::with_capacity(text.len()), |mut out, (c, deceives)| {
        if deceives {
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
    judged(json).fold(String::with_capacity(json.len()), |mut out, (c, deceives)| {
        if deceives {
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
    fn what_shows_as_nothing_is_shown_as_an_escape() {
        let blank = [
            "\u{ad}\u{34f}\u{115f}\u{1160}\u{17b4}\u{180b}\u{200b}\u{206a}\u{2800}\u{3164}",
            "\u{fe0d}\u{feff}\u{ffa0}\u{fff0}\u{1bca0}\u{1d173}\u{e0041}\u{e0100}",
        ];
        for c in blank.concat().chars() {
            assert_eq!(visible(&format!("a{c}b")), format!("a{}b", c.escape_unicode()));
        }
    }

    #[test]
    fn a_selector_counts_only_where_it_has_a_symbol_to_select_for() {
        for seen in
            ["⚠\u{fe0f}", "☎\u{fe0e}!", "a ©\u{fe0f}❤\u{fe0f}", "🅰\u{fe0e}", "1\u{fe0f}\u{20e3}", "#\u{fe0f}\u{20e3}"]
        {
            assert_eq!(first_deceptive(seen), None, "{seen:?}");
        }
        let hidden = [
            "\u{fe0f}",
            "a\u{fe0f}",
            "1\u{fe0e}",
            " \u{fe0f}",
            "漢\u{fe0f}",
            "é\u{fe0e}",
            "\n\u{fe0f}",
            "\u{200b}\u{fe0f}",
        ];
        for hidden in hidden.into_iter().chain(["⚠\u{fe0f}\u{fe0e}", "⚠\u{fe0f}\u{fe0f}", "1\u{fe0f}x\u{20e3}"]) {
            assert!(first_deceptive(hidden).is_some(), "{hidden:?}");
        }
        assert_eq!(visible("⚠\u{fe0f}\u{fe0e}a\u{fe0f}"), "⚠\u{fe0f}\\u{fe0e}a\\u{fe0f}");
        assert_eq!(visible_json("\"\u{fe0f}⚠\u{fe0f}\""), "\"\\ufe0f⚠\u{fe0f}\"");
    }

    #[test]
    fn what_can_be_seen_is_left_alone() {
        let text = "\tgrün 한글 ﾊﾝ ⠃⠗ 漢字 עברית ไทย 🦀 ⚠\u{fe0f}\n";
        assert_eq!(visible(text), text);
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
