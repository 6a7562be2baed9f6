//! Sanitises untrusted text for display, and detects deceptive characters.

use serde_json::Value;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

/// The block size of the fast path, in bytes.
const AT_A_GLANCE: usize = 64;
/// The length in bytes at which an id is cut.
const MAX_ID: usize = 256;

/// Returns the first character that could hide or reorder text for a reader: controls other than
/// tab and newline, direction marks, line separators, annotations, and invisible characters.
#[must_use]
pub fn first_deceptive(text: &str) -> Option<char> {
    // Fast path: most texts consist of plain ASCII.
    let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n');
    // Without an early exit per block, so that the compiler can vectorise the loop.
    let all_plain = |block: &[u8]| block.iter().fold(true, |all, byte| all & plain(byte));
    if text.as_bytes().chunks(AT_A_GLANCE).all(all_plain) { None } else { deceptive(text).next() }
}

/// Returns every deceptive character of a text.
pub fn deceptive(text: &str) -> impl Iterator<Item = char> {
    judged(text).filter_map(|(c, deceives)| deceives.then_some(c))
}

/// Returns each character, and whether it is deceptive in its context.
fn judged(text: &str) -> impl Iterator<Item = (char, bool)> {
    judged_after(None, text)
}

/// Does the same for a text that follows the character `before`.
fn judged_after(mut before: Option<char>, text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut chars = text.chars().peekable();
    std::iter::from_fn(move || {
        let c = chars.next()?;
        let deceives = is_deceptive(c) || (is_selector(c) && !selects(before, chars.peek()));
        before = Some(c);
        Some((c, deceives))
    })
}

/// Returns whether a character is a text or emoji variation selector. Emoji carry them; elsewhere
/// they are invisible.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// Returns whether a selector is effective: after a symbol, or between a digit and the keycap mark.
fn selects(before: Option<char>, after: Option<&char>) -> bool {
    match before {
        Some('0'..='9' | '#' | '*') => after == Some(&'\u{20e3}'),
        Some(c) => is_symbol(c),
        None => false,
    }
}

/// Returns whether a character lies in the blocks of all symbols with a choice by Unicode: `©`,
/// `®`, arrows, signs, emoji. No letter of running text lies there.
fn is_symbol(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}'
        | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2934}'..='\u{2935}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}'
        | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Returns whether a character is deceptive in every context.
fn is_deceptive(c: char) -> bool {
    (c.is_control() && c != '\t' && c != '\n')
        || is_invisible(c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}')
}

/// Returns whether fonts render a character as nothing, or as the blank Braille pattern. Excludes
/// the selectors of [`is_selector`], which depend on context. The controls of Egyptian hieroglyphs
/// and the filler of the Khitan script are not among those that Unicode lists as ignorable.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{2800}' | '\u{13430}'..='\u{1343f}' | '\u{16fe4}')
        || (is_ignorable(c) && !matches!(c, '\u{fe0e}' | '\u{fe0f}'))
}

/// Returns whether a character is a `Default_Ignorable_Code_Point` of Unicode: direction marks,
/// joiners, tags, variation selectors, Hangul fillers. Fonts render these as nothing, and
/// case-insensitive file systems skip them when comparing names.
#[must_use]
pub fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes [`deceptive`] characters, so that a terminal shows them.
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

/// Escapes deceptive characters of a JSON text with JSON escapes. The value stays the same, and a
/// terminal or line reader gets one line that cannot control it.
#[must_use]
pub fn visible_json(json: &str) -> String {
    judged(json).fold(String::with_capacity(json.len()), |mut out, (c, deceives)| {
        push_visible(&mut out, c, deceives);
        out
    })
}

fn push_visible(out: &mut String, c: char, deceives: bool) {
    if deceives {
        // Digit by digit: a tool can print nothing else, and the formatter takes ten times as long.
        for unit in c.encode_utf16(&mut [0; 2]) {
            let digits = [12, 8, 4, 0].map(|shift| u32::from(*unit >> shift & 0xf));
            out.push_str("\\u");
            out.extend(digits.into_iter().filter_map(|digit| char::from_digit(digit, 16)));
        }
    } else {
        out.push(c);
    }
}

/// A writer that escapes a JSON text as [`visible_json`] in pieces, without buffering all of it.
#[derive(Debug)]
pub struct VisibleJson<W> {
    inner: W,
    /// The bytes not yet written.
    pending: Vec<u8>,
    before: Option<char>,
}

impl<W: io::Write> VisibleJson<W> {
    /// The size of a piece, in bytes.
    const PIECE: usize = 32 << 10;

    /// Creates a writer on top of `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, pending: Vec::with_capacity(2 * Self::PIECE), before: None }
    }

    /// Writes the remaining bytes.
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

    /// Writes the pending bytes except for the last `keeps` characters, which depend on the next
    /// one.
    fn piece(&mut self, keeps: usize) -> io::Result<()> {
        let valid = match std::str::from_utf8(&self.pending) {
            Ok(text) => text,
            // The rest of an incomplete character comes with the next piece.
            Err(error) => {
                std::str::from_utf8(&self.pending[..error.valid_up_to()]).unwrap_or_default()
            }
        };
        let kept: usize = valid.chars().rev().take(keeps).map(char::len_utf8).sum();
        let end = valid.len() - kept;
        let text = &valid[..end];
        if first_deceptive(text).is_none() {
            self.inner.write_all(text.as_bytes())?;
        } else {
            let shown = judged_after(self.before, valid).take(text.chars().count());
            let shown = shown.fold(String::with_capacity(text.len()), |mut out, (c, deceives)| {
                push_visible(&mut out, c, deceives);
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

/// Truncates `text` to at most `max` bytes at a character boundary.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Truncates each line of `text` to at most `max` bytes. A truncated line ends with `…`.
#[must_use]
pub fn short_lines(text: &str, max: usize) -> String {
    let short = |line: &str| match cut(line, max) {
        whole if whole.len() == line.len() => line.to_owned(),
        beginning => format!("{beginning}…"),
    };
    text.split('\n').map(short).collect::<Vec<_>>().join("\n")
}

/// Returns a name as a key of TOML: in quotes, unless it is a bare key.
#[must_use]
pub fn toml_key(name: &str) -> Cow<'_, str> {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => Cow::Borrowed(name),
        // The escapes of JSON are escapes of TOML as well.
        false => Cow::Owned(Value::from(name).to_string()),
    }
}

/// Returns a caller's id as the log shows it: at most 256 bytes, with deceptive characters escaped
/// and with spaces in place of line breaks and tabs, so that it stays within its line.
///
/// An id that has to be changed ends with a hash of the original, so that it stays different from
/// others. A result is not changed again. `.` and `..` are changed as well: a URL with such a
/// segment names another resource.
#[must_use]
pub fn sanitize_id(id: &str) -> String {
    let shown = visible(cut(id, MAX_ID)).replace(['\n', '\t'], " ");
    if shown == id && !matches!(id, "." | "..") {
        return shown;
    }
    let mut hash = DefaultHasher::new();
    id.hash(&mut hash);
    let end = format!("~{:016x}", hash.finish());
    // A selector at the end would be deceptive after the cut.
    let stem = cut(&shown, MAX_ID - end.len()).trim_end_matches(is_selector);
    format!("{stem}{end}")
}

/// The length of the shortest mark in place of the middle of a text, in characters.
const MARK: usize = " … 1 characters … ".len() - 4;

/// Shows a text on one line of at most `max` characters; a longer one loses its middle to a count,
/// unless the count would be as long.
///
/// The text is cut before escaping, so that the omitted part only costs counting.
#[must_use]
pub fn elided(text: &str, max: usize) -> String {
    let half = max / 2;
    // A character has at most four bytes and shows as at least one. One extra character stays after
    // the cut, since escaping depends on neighbours.
    let ends = half.saturating_add(2 + MARK / 2).saturating_mul(4);
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
    if count <= max.saturating_add(MARK) {
        return line.to_owned();
    }
    let half = max / 2;
    let head: String = line.chars().take(half).collect();
    let tail: String = line.chars().skip(count - half).collect();
    format!("{head} … {} characters … {tail}", count - 2 * half)
}

/// Shows a value as JSON on one line, as [`elided`]. Only the beginning of a long value is written.
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

/// A writer that keeps the first bytes and refuses the rest.
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
mod tests;
