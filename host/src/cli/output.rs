//! Writing to standard output, where every failure counts.

use super::exit::Failure;
use super::style::{self, Style};
use crate::tool::text::{VisibleJson, elided, visible};
use serde::Serialize;
use std::io::{self, IsTerminal as _, Write as _};

/// How much of a label is shown, in characters: it may hold a name that a model made up.
const MAX_LABEL: usize = 160;

/// What stands before lines that are not the program's own.
pub(super) const INDENT: &str = "  ";

/// Whoever reads standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Has had all of it so far.
    There,
    /// Has closed it.
    Gone,
}

/// Prints lines of text.
pub(super) fn text(text: &str) -> Result<Reader, Failure> {
    let mut out = io::stdout().lock();
    heard(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints a tool's output as it is; on a terminal the next prompt still starts on a line of its own.
pub(super) fn verbatim(output: &str) -> Result<Reader, Failure> {
    let mut out = io::stdout().lock();
    let needs_end = io::stdout().is_terminal() && !output.ends_with('\n') && !output.is_empty();
    let end: &[u8] = if needs_end { b"\n" } else { b"" };
    heard(out.write_all(output.as_bytes()).and_then(|()| out.write_all(end)).and_then(|()| out.flush()))
}

/// Whoever closed the pipe has read enough: `palisade list | head -1` is no failure, and a call that failed has failed all the same.
pub(super) fn heard(written: io::Result<()>) -> Result<Reader, Failure> {
    match written {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error.into()),
    }
}

/// Prints one JSON value, indented, with nothing in it that could play tricks on a terminal. The text of a large value is
/// never in memory as a whole.
pub(super) fn json(value: &impl Serialize) -> Result<Reader, Failure> {
    heard(write_json(io::stdout().lock(), value))
}

fn write_json(out: impl io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut out = VisibleJson::new(out);
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    out.finish()
}

/// Says a line on standard error, with nothing in it that could play tricks on a terminal. If nobody can be told, there is nobody to tell about that.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", indented(line));
}

/// As [`note`], for a line of a tool's own: it never begins where those of the program do.
pub(super) fn quote(line: &str) {
    note(&format!("{INDENT}{line}"));
}

/// As [`note`], behind a label that stands out.
pub(super) fn problem(label: &str, line: &str) {
    let label = style::error(&elided(label, MAX_LABEL));
    let _ = writeln!(io::stderr().lock(), "{label} {}", indented(line));
}

/// Text that may hold a plugin's words: its further lines stand further in, so that none of them passes for a line of the program.
fn indented(text: &str) -> String {
    visible(text.trim_end()).replace('\n', &format!("\n{INDENT}"))
}

/// A cell of a table: text that may come from anywhere, and how it looks on a terminal. Only [`table`] shows it, and there it is escaped.
#[derive(Debug)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell that stands out.
    pub(super) fn heading(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::Heading }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::Plain }
    }
}

/// Lines up columns; the last one is as wide as it is. Whatever a cell's text holds, it stays one line and draws nothing.
pub(super) fn table(rows: &[Vec<Cell>]) -> String {
    let shown: Vec<Vec<(String, Style)>> =
        rows.iter().map(|row| row.iter().map(|cell| (elided(&cell.text, usize::MAX), cell.style)).collect()).collect();
    let columns = shown.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        shown.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    shown.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[(String, Style)], widths: &[usize]) -> String {
    // Cells that are empty at the end of a row leave no blanks behind.
    let last = row.iter().rposition(|(text, _)| !text.trim_end().is_empty());
    let mut line = String::new();
    for (index, ((text, style), width)) in row.iter().zip(widths).enumerate().take(last.map_or(0, |last| last + 1)) {
        let is_last = Some(index) == last;
        line.push_str(&style::painted(if is_last { text.trim_end() } else { text }, *style));
        if !is_last {
            line.push_str(&" ".repeat(width.saturating_sub(text.chars().count()) + 2));
        }
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_of_a_text_stand_further_in() {
        assert_eq!(indented("x\nerror: host broken\n\tz\n"), "x\n  error: host broken\n  \tz");
    }

    #[test]
    fn a_cell_stays_one_line_and_draws_nothing_whatever_it_holds() {
        let rows = [
            vec![Cell::heading("a\u{1b}[2J"), "b".into()],
            vec!["c\nd\te".into(), "\u{202e}f\r".into()],
            vec!["g".into(), String::new().into()],
        ];
        let expected = "a\\u{1b}[2J  b\nc\\nd\\te     \\u{202e}f\\u{d}\ng\n";
        assert_eq!(table(&rows), expected);
    }
}
