//! Text that others wrote, made fit to be shown or checked for what hides in it.

use serde_json::Value;
use std::io;

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
    judged_after(None, text)
}

/// The same for text that stands behind this character.
fn judged_after(mut before: Option<char>, text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut chars = text.chars().peekable();
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
    judged(json).fold(String::with_capacity(json.len()), |mut out, judged| {
        push_visible(&mut out, judged);
        out
    })
}

fn push_visible(out: &mut String, (c, deceives): (char, bool)) {
    if deceives {
        c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
    } else {
        out.push(c);
    }
}

/// Writes a JSON text as [`visible_json`] shows it, piece by piece: it is never in memory as a whole.
#[derive(Debug)]
pub struct VisibleJson<W> {
    inner: W,
    /// What has not been written yet: whole pieces go on.
    pending: Vec<u8>,
    before: Option<char>,
}

impl<W: io::Write> VisibleJson<W> {
    /// How much is written at once, in bytes.
    const PIECE: usize = 32 << 10;

    /// Writes to this.
    pub fn new(inner: W) -> Self {
        Self { inner, pending: Vec::with_capacity(2 * Self::PIECE), before: None }
    }

    /// Writes the rest.
    ///
    /// # Errors
    ///
    /// Those of the inner writer.
    pub fn finish(mut self) -> io::Result<()> {
        self.piece(0)?;
        if !self.pending.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.inner.flush()
    }

    /// Writes what is pending, but for so many characters at its end: how the last one shows depends on the next.
    fn piece(&mut self, keeps: usize) -> io::Result<()> {
        let valid = match std::str::from_utf8(&self.pending) {
            Ok(text) => text,
            // The rest of a character comes with the next piece.
            Err(error) => std::str::from_utf8(&self.pending[..error.valid_up_to()]).unwrap_or_default(),
        };
        let kept: usize = valid.chars().rev().take(keeps).map(char::len_utf8).sum();
        let end = valid.len() - kept;
        let text = &valid[..end];
        if first_deceptive(text).is_none() {
            self.inner.write_all(text.as_bytes())?;
        } else {
            let shown = judged_after(self.before, valid).take(text.chars().count());
            let shown = shown.fold(String::with_capacity(text.len()), |mut out, judged| {
                push_visible(&mut out, judged);
                out
            });
            self.inner.write_all(shown.as_bytes())?;
        }
        self.before = text.chars().next_back().or(self.before);
        self.pending.drain(..end);
        Ok(())
    }
}

impl<W: io::Write> io::Write for VisibleJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = &bytes[..bytes.len().min(Self::PIECE)];
        self.pending.extend_from_slice(taken);
        if self.pending.len() >= Self::PIECE {
            self.piece(1)?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Cuts `text` to at most `max` bytes at a character's border.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Shows a text on one line of at most `max` characters, its middle left out with a count where it is longer.
///
/// A long text is cut before anything else is done with it: what is not shown costs no more than being counted.
#[must_use]
pub fn elided(text: &str, max: usize) -> String {
    let half = max / 2;
    // No character has more than four bytes, and none is shown as less than one. Behind the cut a character stays, since what
    // stands beside it decides how some are shown.
    let ends = half.saturating_add(2).saturating_mul(4);
    if text.len() <= max.max(ends.saturating_mul(2)) {
        return elided_line(&on_one_line(text), max);
    }
    let head: String = on_one_line(cut(text, ends)).chars().take(half).collect();
    let tail = on_one_line(&text[text.ceil_char_boundary(text.len() - ends)..]);
    let tail: String = tail.chars().skip(tail.chars().count() - half).collect();
    let left_out = text.chars().count().saturating_sub(2 * half);
    format!("{head} … {left_out} characters … {tail}")
}

fn on_one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

fn elided_line(line: &str, max: usize) -> String {
    let count = line.chars().count();
    if count <= max {
        return line.to_owned();
    }
    let half = max / 2;
    let head: String = line.chars().take(half).collect();
    let tail: String = line.chars().skip(count - half).collect();
    format!("{head} … {} characters … {tail}", count - 2 * half)
}

/// Shows a value as JSON on one line, as [`elided`]. Of a long one no more is written than its beginning.
#[must_use]
pub fn elided_json(value: &Value, max: usize) -> String {
    let mut beginning = Beginning { bytes: Vec::new(), room: max.saturating_mul(8) };
    let is_whole = serde_json::to_writer(&mut beginning, value).is_ok();
    let text = String::from_utf8_lossy(&beginning.bytes);
    if is_whole {
        return elided(&text, max);
    }
    let shown: String = on_one_line(&text).chars().take(max).collect();
    format!("{shown} …")
}

/// The first bytes of what is written. It refuses the rest.
struct Beginning {
    bytes: Vec<u8>,
    room: usize,
}

impl io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room);
        self.room -= taken;
        self.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
        assert_eq!(serde_json::from_str::<Value>(&escaped).ok(), Some(value));
    }

    #[test]
    fn a_json_text_that_is_written_in_pieces_reads_as_one_that_is_whole() {
        use std::io::Write as _;
        const PIECE: usize = VisibleJson::<Vec<u8>>::PIECE;
        for part in ["abc\n", "ä漢🦀", "a\u{202e}", "⚠\u{fe0f}", "1\u{fe0f}\u{20e3}", "\u{fe0f}", "\u{e0001}\u{7f}"]
        {
            for before in ["", "x", "xy", "xyz"] {
                let text = [before, &part.repeat(2 * PIECE / part.len() + 7)].concat();
                for at_once in [1, 7, PIECE - 1, PIECE, text.len()] {
                    let mut out = Vec::new();
                    let mut visible = VisibleJson::new(&mut out);
                    let written: io::Result<()> =
                        text.as_bytes().chunks(at_once).try_for_each(|bytes| visible.write_all(bytes));
                    assert!(written.and_then(|()| visible.finish()).is_ok());
                    assert!(out == visible_json(&text).into_bytes(), "{part:?} behind {before:?}, {at_once} at once");
                }
            }
        }
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("a", 9), "a");
    }

    #[test]
    fn a_text_that_is_cut_first_reads_as_one_that_is_cut_last() {
        for part in ["abc", "a\nb\tc", "ä漢🦀", "a\u{202e}", "⚠\u{fe0f}", "1\u{fe0f}\u{20e3}", "\u{e0001}"] {
            let text = part.repeat(100);
            for max in [0, 1, 2, 7, 64, 100, 150] {
                let (first, last) = (elided(&text, max), elided_line(&on_one_line(&text), max));
                let ends = |shown: &str| {
                    let (head, rest) = shown.split_once(" … ").unwrap_or_default();
                    let (_, tail) = rest.split_once(" … ").unwrap_or_default();
                    (head.to_owned(), tail.to_owned())
                };
                assert_eq!(ends(&first), ends(&last), "{part:?} in {max}");
            }
        }
    }

    #[test]
    fn what_is_not_shown_is_counted_and_not_escaped() {
        let text = format!("a{}z", "\u{1b}".repeat(1 << 20));
        assert_eq!(elided(&text, 4), "a\\ … 1048574 characters … }z");
    }

    #[test]
    fn of_a_long_value_the_beginning_is_shown() {
        let value = serde_json::json!({"a": "x".repeat(1 << 20)});
        assert_eq!(elided_json(&value, 8), "{\"a\":\"xx …");
        assert_eq!(elided_json(&serde_json::json!({"a": 1}), 8), "{\"a\":1}");
        assert_eq!(elided_json(&serde_json::json!([10, 20, 30]), 6), "[10 … 4 characters … 30]");
    }

    #[test]
    fn a_long_text_keeps_its_ends_and_says_what_is_missing() {
        assert_eq!(elided("abcdefghij", 4), "ab … 6 characters … ij");
        assert_eq!(elided("ab\ncd", 10), "ab\\ncd");
    }
}
