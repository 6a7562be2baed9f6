//! Fits text into the width of a terminal. Text for a pipe or a file is never wrapped: a script
//! reads it by lines.
//!
//! Text of others is broken within its words where they are longer than a line ([`wrapped`]): at
//! the left edge it could pass for the program's own. The program's own sentences are broken
//! between words only ([`flowing`]), so that a path or a command in them can be copied. Sentences
//! that may quote text of others are broken between words where that is possible ([`fitted`]).

use std::borrow::Cow;
use std::os::fd::AsFd;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The least width that text is fitted to, in columns: a narrower terminal breaks lines itself.
const LEAST: usize = 20;

/// The columns between two tab stops.
const TAB: usize = 8;

/// From this number of columns on, text is for no terminal. A part of the width of a stream that is
/// no terminal (`usize::MAX`) has more, and a terminal has at most 65,535.
const UNBOUNDED: usize = usize::MAX / 2;

/// Returns the number of columns that a stream shows, or `usize::MAX` if it is no terminal.
pub(super) fn columns(stream: impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).max(LEAST),
        Ok(_) | Err(_) => usize::MAX,
    }
}

/// Returns the columns that a text without control characters takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Returns the most columns that a text takes. Terminals differ on what belongs together: an emoji
/// of several signs is shown as one or as all of them, and so is an Arabic ligature; a selector
/// makes a narrow sign wide or does not.
fn most(text: &str) -> usize {
    let letters = |sign: &str| sign.chars().map(|letter| letter.width().unwrap_or(0)).sum();
    // Sign by sign: a terminal may differ in one and not in another.
    let signs: usize = text.graphemes(true).map(|sign| width(sign).max(letters(sign))).sum();
    signs.max(width(text))
}

/// Replaces each tab with blanks. A terminal moves to a stop that depends on the text before the
/// line, so the width of a tab is not known, and after a row of tabs it goes on at the left edge.
fn without_tabs(line: &str) -> Cow<'_, str> {
    if !line.contains('\t') {
        return line.into();
    }
    let mut parts = line.split('\t');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let blanks = TAB - width(&shown) % TAB;
        shown.extend(std::iter::repeat_n(' ', blanks).chain(part.chars()));
    }
    shown.into()
}

/// Breaks a line into pieces of at most `columns` columns: between words, and within a word that is
/// longer than a piece. Signs that a reader takes for one stay together, unless they alone are
/// wider than a piece. A line that is not broken for a terminal keeps its tabs.
pub(super) fn wrapped(line: &str, columns: usize) -> Vec<String> {
    if columns >= UNBOUNDED {
        return vec![line.to_owned()];
    }
    let line = &*without_tabs(line);
    if most(line) <= columns {
        return vec![line.to_owned()];
    }
    let mut pieces = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let fits = |piece: &String| most(piece) + most(word.trim_end()) <= columns;
        if !pieces.last().is_some_and(fits) && pieces.last().is_some_and(|it| !it.is_empty()) {
            pieces.push(String::new());
        }
        for sign in word.graphemes(true) {
            if most(sign) <= columns {
                push(&mut pieces, sign, columns);
            } else {
                let letters = sign.char_indices().map(|(at, it)| &sign[at..at + it.len_utf8()]);
                letters.for_each(|letter| push(&mut pieces, letter, columns));
            }
        }
    }
    pieces.iter().map(|piece| piece.trim_end().to_owned()).collect()
}

/// Appends a sign to the last piece, or to a new one if that is full. A blank at the end of a full
/// piece is left out.
fn push(pieces: &mut Vec<String>, sign: &str, columns: usize) {
    let full = pieces.last().is_none_or(|it| most(&format!("{it}{sign}")) > columns);
    match pieces.last_mut() {
        Some(piece) if !full || piece.is_empty() => piece.push_str(sign),
        _ if sign == " " => {}
        _ => pieces.push(sign.to_owned()),
    }
}

/// Breaks a line into pieces of at most `first` columns, and of `rest` columns after the first one,
/// between words only: a longer word stays whole, and so does a part in backquotes.
pub(super) fn flowing(line: &str, first: usize, rest: usize) -> Vec<String> {
    if width(line) <= first {
        return vec![line.to_owned()];
    }
    let mut pieces = vec![String::new()];
    for word in words(line) {
        let room = if pieces.len() == 1 { first } else { rest };
        let fits = |piece: &String| width(piece) + width(word.trim_end()) <= room;
        if !pieces.last().is_some_and(fits)
            && (pieces.len() == 1 || !pieces.ends_with(&[String::new()]))
        {
            pieces.push(String::new());
        }
        pieces.iter_mut().last().into_iter().for_each(|piece| piece.push_str(word));
    }
    pieces.iter().map(|piece| piece.trim_end().to_owned()).collect()
}

/// Breaks a line as [`flowing`] does, and also within a word that is longer than a piece: a
/// terminal would break it at the left edge. For sentences of the program that quote text of
/// others.
pub(super) fn fitted(line: &str, first: usize, rest: usize) -> Vec<String> {
    if rest >= UNBOUNDED {
        return vec![line.to_owned()];
    }
    let pieces = flowing(&without_tabs(line), first, rest);
    let room = |index| if index == 0 { first } else { rest };
    pieces.iter().enumerate().flat_map(|(index, piece)| wrapped(piece, room(index))).collect()
}

/// Splits a line into its words, each with the blanks behind it. A part in backquotes is one word.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (word, after) = rest.split_at(end_of_word(rest));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Returns the index of the first blank after a word that is in no backquotes, and after it.
fn end_of_word(line: &str) -> usize {
    let mut is_quoted = false;
    for (index, letter) in line.char_indices() {
        match letter {
            '`' => {
                is_quoted = !is_quoted && line.get(index + 1..).is_some_and(|it| it.contains('`'));
            }
            ' ' if !is_quoted => return index + 1,
            _ => {}
        }
    }
    line.len()
}

/// Breaks a line of the program's own as [`flowing`] does, with `begin` before each piece after the
/// first one.
pub(super) fn flowing_below(begin: &str, line: &str, columns: usize) -> String {
    let rest = columns.saturating_sub(width(begin)).max(LEAST / 2);
    flowing(line, columns, rest).join(&format!("\n{begin}"))
}

/// Breaks a line that begins with `first`; the lines after it begin with `rest`.
pub(super) fn hanging(first: &str, rest: &str, line: &str, columns: usize) -> String {
    let room = columns.saturating_sub(width(first).max(width(rest))).max(LEAST / 2);
    let pieces = wrapped(line, room);
    let lines = pieces.iter().enumerate().map(|(index, piece)| {
        let begin = if index == 0 { first } else { rest };
        format!("{begin}{piece}").trim_end().to_owned() + "\n"
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_within_long_ones() {
        assert_eq!(wrapped("a short line", 12), ["a short line"]);
        assert_eq!(wrapped("a short line", 11), ["a short", "line"]);
        assert_eq!(wrapped("to 0123456789abcdef it", 10), ["to", "0123456789", "abcdef it"]);
        assert_eq!(wrapped("日本語のテスト", 6), ["日本語", "のテス", "ト"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn tabs_move_no_text_to_the_left_edge() {
        let line = format!("{} forged", "\t".repeat(30));
        let text = hanging("  ", "  ", &line, 80);
        assert!(
            !text.contains('\t') && text.lines().all(|it| it.is_empty() || it.starts_with("  ")),
            "{text}"
        );
        assert_eq!(wrapped("a\tb\t\tc", 80), ["a       b               c"]);
        assert_eq!(wrapped("日本\tb", 80), ["日本    b"]);
        assert_eq!(hanging("  ", "  ", "a\tb", usize::MAX), "  a\tb\n");
    }

    #[test]
    fn paths_and_commands_stay_whole() {
        let flowing = |line, columns| flowing(line, columns, columns);
        assert_eq!(flowing("a short line", 12), ["a short line"]);
        assert_eq!(flowing("a short line", 11), ["a short", "line"]);
        assert_eq!(flowing("see /a/very/long/path here", 10), ["see", "/a/very/long/path", "here"]);
        assert_eq!(flowing("run `a b c d e f` now", 9), ["run", "`a b c d e f`", "now"]);
        assert_eq!(flowing("run `a b`, `c d` now", 10), ["run `a b`,", "`c d` now"]);
        assert_eq!(flowing("it`s as it is", 8), ["it`s as", "it is"], "no pair of quotes");
        assert_eq!(flowing("/a/very/long/path", 9), ["", "/a/very/long/path"]);
        assert_eq!(super::flowing("one two three", 4, 9), ["one", "two three"]);
        assert_eq!(super::flowing("word", 2, 9), ["", "word"], "a label has taken the room");
        assert_eq!(flowing_below("  ", "one two three", 9), "one two\n  three");
    }

    /// Texts whose width is not the sum of their characters' widths, or of which terminals differ.
    const SIGNS: [&str; 10] = [
        "\u{2764}\u{fe0f}",
        "1\u{fe0f}\u{20e3}",
        "\u{644}\u{627}",
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
        "\u{1f44d}\u{1f3fd}",
        "\u{1f1e9}\u{1f1ea}",
        "e\u{301}",
        "\u{65e5}",
        "a",
        " ",
    ];

    #[test]
    fn no_piece_is_wider_than_the_terminal_and_no_sign_is_lost() {
        let blanks = |text: &str| text.replace(' ', "");
        for one in SIGNS {
            for other in SIGNS {
                for last in SIGNS {
                    let line = format!("{one}{other}{last}").repeat(12);
                    for columns in [2, 3, 7, 20, 31] {
                        let pieces = wrapped(&line, columns);
                        let widest = pieces.iter().map(|piece| most(piece)).max();
                        assert!(widest <= Some(columns), "{line:?} in {columns}: {pieces:?}");
                        assert_eq!(blanks(&pieces.concat()), blanks(&line), "{columns}");
                    }
                }
            }
        }
    }

    #[test]
    fn signs_that_belong_together_stay_together() {
        for sign in SIGNS.into_iter().filter(|sign| *sign != " ") {
            for piece in wrapped(&sign.repeat(9), 8) {
                assert!(rest_of(&piece, sign).is_empty(), "{sign:?}: {piece:?}");
            }
        }
        let family = SIGNS[3];
        assert_eq!(wrapped(family, 2).concat(), family, "wider than a piece, it is broken");
    }

    /// Returns what is left of a piece without the whole signs in it.
    fn rest_of(piece: &str, sign: &str) -> String {
        piece.replace(sign, "")
    }

    #[test]
    fn continuation_lines_are_indented_and_fit() {
        let text = hanging("  input: ", "    ", "one two three four five", 24);
        assert_eq!(text, "  input: one two three\n    four five\n");
        assert!(text.lines().all(|line| width(line) <= 24));
        let text = hanging("  input: ", "    ", &"\u{2764}\u{fe0f}".repeat(40), 24);
        assert!(text.lines().all(|line| most(line) <= 24), "{text}");
    }
}
