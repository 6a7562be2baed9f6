//! Writes to standard output and standard error.

use super::exit::Failure;
use super::style::{self, Style};
use super::wrap::{columns, hanging, width};
use palisade::tool::text::{VisibleJson, elided, visible};
use serde::Serialize;
use std::io::{self, IsTerminal as _, Write as _};

/// Maximum length of a label, in characters: it may contain a tool name invented by a model.
const MAX_LABEL: usize = 160;

/// Indentation of lines that are not the program's own.
pub(super) const INDENT: &str = "  ";

/// The state of the reader of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The reader has taken all output so far.
    There,
    /// The reader has closed the pipe.
    Gone,
}

/// Prints text.
pub(super) fn text(text: &str) -> Result<Reader, Failure> {
    let mut out = io::stdout().lock();
    heard(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Breaks the lines of a text at the width of the terminal. Continuation lines are indented.
pub(super) fn prose(text: &str) -> String {
    let room = columns(io::stdout());
    text.lines().map(|line| hanging("", INDENT, line, room)).collect()
}

/// Prints a tool's output unchanged. On a terminal, adds a missing final newline, so that the next
/// prompt starts on a new line.
pub(super) fn verbatim(output: &str) -> Result<Reader, Failure> {
    let mut out = io::stdout().lock();
    let needs_end = io::stdout().is_terminal() && !output.ends_with('\n') && !output.is_empty();
    let end: &[u8] = if needs_end { b"\n" } else { b"" };
    heard(
        out.write_all(output.as_bytes())
            .and_then(|()| out.write_all(end))
            .and_then(|()| out.flush()),
    )
}

/// Maps a closed pipe to [`Reader::Gone`]: `palisade list | head -1` is no failure, and a failed
/// call keeps its exit code.
pub(super) fn heard(written: io::Result<()>) -> Result<Reader, Failure> {
    match written {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error.into()),
    }
}

/// Prints one JSON value, indented, with control characters escaped for terminals. The text is
/// streamed, so that a large value is never in memory as a whole.
pub(super) fn json(value: &impl Serialize) -> Result<Reader, Failure> {
    heard(write_json(io::stdout().lock(), value))
}

fn write_json(out: impl io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut out = VisibleJson::new(out);
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    out.finish()
}

/// Prints a line on standard error, with control characters escaped for terminals. Ignores write
/// errors, because there is nowhere to report them.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", indented(line));
}

/// Prints a usage error of several lines, which quotes arguments. Ignores write errors like
/// [`note`].
pub(super) fn usage(text: &str) {
    let text = visible(text);
    let _ = match text.strip_prefix("error:") {
        Some(text) => write!(io::stderr().lock(), "{}{text}", style::error("error:")),
        None => write!(io::stderr().lock(), "{text}"),
    };
}

/// Prints a line of a tool, indented so that it cannot pass for the program's own output.
pub(super) fn quote(line: &str) {
    note(&format!("{INDENT}{line}"));
}

/// Prints a line on standard error behind a highlighted label.
pub(super) fn problem(label: &str, line: &str) {
    let label = style::error(&elided(label, MAX_LABEL));
    let _ = writeln!(io::stderr().lock(), "{label} {}", indented(line));
}

/// Escapes text and indents its continuation lines, so that text of a plugin cannot imitate a line
/// of the program.
fn indented(text: &str) -> String {
    visible(text.trim_end()).replace('\n', &format!("\n{INDENT}"))
}

/// A cell of a table: untrusted text and its style. Only [`table`] prints it, escaped.
#[derive(Debug)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Returns a cell in heading style.
    pub(super) fn heading(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::Heading }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::Plain }
    }
}

/// The least room for the last column of a table, in columns. With less, each last cell stands on
/// lines of its own.
const LEAST_ROOM: usize = 24;
/// The indentation of a last cell on lines of its own.
const OWN_LINES: &str = "    ";

/// Formats rows into aligned columns; the last column is not padded. Each cell is escaped. On a
/// terminal, lines are broken at its width, with the parts of a cell below each other.
pub(super) fn table(rows: &[Vec<Cell>]) -> String {
    table_within(rows, columns(io::stdout()))
}

fn table_within(rows: &[Vec<Cell>], room: usize) -> String {
    let shown: Vec<Vec<(String, Style)>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| (elided(&cell.text, usize::MAX), cell.style)).collect())
        .collect();
    let count = shown.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        shown.iter().filter_map(|row| row.get(column)).map(|(text, _)| width(text)).max()
    };
    let widths: Vec<usize> = (0..count).map(|column| widest(column).unwrap_or(0)).collect();
    shown.iter().map(|row| line(row, &widths, room)).collect()
}

fn line(row: &[(String, Style)], widths: &[usize], room: usize) -> String {
    // Empty cells at the end of a row are left out, so that no trailing blanks are printed.
    let last = row.iter().rposition(|(text, _)| !text.trim_end().is_empty());
    let Some((head, (text, style))) =
        last.and_then(|last| Some((row.get(..last)?, row.get(last)?)))
    else {
        return "\n".to_owned();
    };
    let text = text.trim_end();
    let before: usize = widths.iter().take(head.len()).map(|width| width + 2).sum();
    let mut begin = String::new();
    for ((text, style), width) in head.iter().zip(widths) {
        begin.push_str(&style::painted(text, *style));
        begin.push_str(&" ".repeat(width.saturating_sub(self::width(text)) + 2));
    }
    if before + width(text) <= room {
        return begin + &style::painted(text, *style) + "\n";
    }
    let begins_apart = head.is_empty() || before + LEAST_ROOM > room;
    let indent = if begins_apart { OWN_LINES.to_owned() } else { " ".repeat(before) };
    let broken = hanging("", "", text, room.saturating_sub(indent.len()));
    let mut parts = broken.lines().map(|part| style::painted(part, *style));
    let first = if begins_apart && !head.is_empty() {
        // The cells before the last one may be too wide as well.
        let head: Vec<&str> = head.iter().map(|(text, _)| text.trim_end()).collect();
        hanging("", OWN_LINES, head.join("  ").trim_end(), room)
    } else {
        begin + &parts.next().unwrap_or_default() + "\n"
    };
    first + &parts.map(|part| format!("{indent}{part}\n")).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_lines_are_indented() {
        assert_eq!(indented("x\nerror: host broken\n\tz\n"), "x\n  error: host broken\n  \tz");
    }

    #[test]
    fn table_cell_is_one_escaped_line() {
        let rows = [
            vec![Cell::heading("a\u{1b}[2J"), "b".into()],
            vec!["c\nd\te".into(), "\u{202e}f\r".into()],
            vec!["g".into(), String::new().into()],
        ];
        let expected = "a\\u{1b}[2J  b\nc\\nd\\te     \\u{202e}f\\u{d}\ng\n";
        assert_eq!(table_within(&rows, usize::MAX), expected);
    }

    #[test]
    fn table_fits_into_its_width() {
        let row = |cells: [&str; 3]| cells.map(Cell::from).into();
        let about = "Reads a text file of the workspace, whole or by lines";
        let rows = [row(["TOOL", "CLASS", "WHAT IT DOES"]), row(["read_file", "read", about])];
        let expected = "TOOL       CLASS  WHAT IT DOES\n\
                        read_file  read   Reads a text file of the\n\
                        \x20                 workspace, whole or by\n\
                        \x20                 lines\n";
        assert_eq!(table_within(&rows, 44), expected);
        let narrow = table_within(&rows, 30);
        let expected = "TOOL       CLASS  WHAT IT DOES\n\
                        read_file  read\n\
                        \x20   Reads a text file of the\n\
                        \x20   workspace, whole or by\n\
                        \x20   lines\n";
        assert_eq!(narrow, expected);
        let long = "x".repeat(100);
        let wide = table_within(&[row([&long, &long, &long])], 60);
        assert!(wide.lines().all(|line| line.len() <= 60), "{wide}");
    }
}
