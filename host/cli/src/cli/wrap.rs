//! Fits text into the width of a terminal. Text for a pipe or a file is never wrapped: a script
//! reads it by lines.

use std::os::fd::AsFd;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The least width that text is fitted to, in columns: a narrower terminal breaks lines itself.
const LEAST: usize = 20;

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

/// Breaks a line into pieces of at most `columns` columns: between words, and within a word that is
/// longer than a piece.
pub(super) fn wrapped(line: &str, columns: usize) -> Vec<String> {
    if width(line) <= columns {
        return vec![line.to_owned()];
    }
    let mut pieces = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let fits = |piece: &String| width(piece) + width(word.trim_end()) <= columns;
        if !pieces.last().is_some_and(fits) && pieces.last().is_some_and(|it| !it.is_empty()) {
            pieces.push(String::new());
        }
        word.chars().for_each(|letter| push(&mut pieces, letter, columns));
    }
    pieces.iter().map(|piece| piece.trim_end().to_owned()).collect()
}

/// Appends a letter to the last piece, or to a new one if that is full. A blank at the end of a
/// full piece is left out.
fn push(pieces: &mut Vec<String>, letter: char, columns: usize) {
    let full = pieces.last().is_none_or(|it| width(it) + letter.width().unwrap_or(0) > columns);
    match pieces.last_mut() {
        Some(piece) if !full => piece.push(letter),
        _ if letter == ' ' => {}
        _ => pieces.push(letter.to_string()),
    }
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
    fn continuation_lines_are_indented_and_fit() {
        let text = hanging("  input: ", "    ", "one two three four five", 24);
        assert_eq!(text, "  input: one two three\n    four five\n");
        assert!(text.lines().all(|line| width(line) <= 24));
    }
}
