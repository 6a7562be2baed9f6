//! Writes to standard output and standard error.

use super::exit::Failure;
use super::style::{self, Style};
use super::wrap::{columns, fitted, flowing, flowing_below, hanging, width};
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
    text.lines().map(|line| flowing_below(INDENT, line, room) + "\n").collect()
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

/// Prints a line on standard error, with control characters escaped for terminals, and broken at
/// the width of one. Ignores write errors, because there is nowhere to report them.
pub(super) fn note(line: &str) {
    tell(&indented(line, 0, columns(io::stderr()), flowing));
}

/// Writes a line to standard error at once, so that no reader sees a part of it.
fn tell(line: &str) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Prints a usage error of several lines, which quotes arguments. Ignores write errors like
/// [`note`].
pub(super) fn usage(text: &str) {
    let text = usage_within(&visible(text), columns(io::stderr()));
    let _ = match text.strip_prefix("error:") {
        Some(text) => write!(io::stderr().lock(), "{}{text}", style::error("error:")),
        None => write!(io::stderr().lock(), "{text}"),
    };
}

/// Breaks the lines of a usage error, which may be indented. A line with a command stays whole.
fn usage_within(text: &str, room: usize) -> String {
    let line = |line: &str| {
        let own = line.len() - line.trim_start().len();
        match line.starts_with("Usage:") {
            true => line.to_owned(),
            false => flowing_below(&" ".repeat(own + INDENT.len()), line, room),
        }
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Prints a line of a tool, indented so that it cannot pass for the program's own output.
pub(super) fn quote(line: &str) {
    let _ = io::stderr().lock().write_all(quoted(line).as_bytes());
}

/// Returns what [`quote`] prints.
pub(super) fn quoted(line: &str) -> String {
    indented(&format!("{INDENT}{line}"), 0, columns(io::stderr()), fitted) + "\n"
}

/// Prints a command on a line of its own, whole, so that it can be copied.
pub(super) fn command(line: &str) {
    tell(&format!("{INDENT}{}", elided(line, usize::MAX)));
}

/// Prints a note as [`note`] does that may quote text of others: each line of it is broken where
/// the terminal would break it, at the left edge.
pub(super) fn quoting_note(line: &str) {
    tell(&indented(line, 0, columns(io::stderr()), fitted));
}

/// Prints a line on standard error behind a highlighted label.
pub(super) fn problem(label: &str, line: &str) {
    labelled(label, line, flowing);
}

/// Prints a problem as [`problem`] does that may quote text of others: each line of it is broken
/// where the terminal would break it.
pub(super) fn quoting_problem(label: &str, line: &str) {
    labelled(label, line, fitted);
}

fn labelled(label: &str, line: &str, broken: Broken) {
    let label = elided(label, MAX_LABEL);
    let line = indented(line, width(&label) + 1, columns(io::stderr()), broken);
    let between = if line.starts_with('\n') { "" } else { " " };
    tell(&format!("{}{between}{line}", style::error(&label)));
}

/// Breaks a line at the columns of its first piece and of the others.
type Broken = fn(&str, usize, usize) -> Vec<String>;

/// Escapes text, breaks its lines and indents all but the first one, so that text of a plugin
/// cannot imitate a line of the program. `taken` columns of the first line are taken.
fn indented(text: &str, taken: usize, room: usize, broken: Broken) -> String {
    let rest = room.saturating_sub(INDENT.len());
    let text = visible(text.trim_end());
    let lines = text.split('\n').enumerate().flat_map(|(index, line)| {
        broken(line, if index == 0 { room.saturating_sub(taken) } else { rest }, rest)
    });
    lines.collect::<Vec<_>>().join(&format!("\n{INDENT}"))
}

/// A cell of a table: untrusted text and its style. Only [`table`] prints it, escaped.
#[derive(Debug)]
pub(super) struct Cell {
    text: String,
    style: Style,
    words: Words,
}

/// The treatment of a word that is longer than a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// It is broken.
    Broken,
    /// It stays whole.
    Whole,
}

impl Cell {
    /// Returns a cell in heading style.
    pub(super) fn heading(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::Heading, words: Words::Broken }
    }

    /// Returns a cell with a sentence of the program, whose paths and commands stay whole.
    pub(super) fn sentence(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::Plain, words: Words::Whole }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::Plain, words: Words::Broken }
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

/// Formats rows as [`table`] does, with lines of at most `room` columns.
pub(super) fn table_within(rows: &[Vec<Cell>], room: usize) -> String {
    let shown: Vec<Vec<Cell>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| Cell { text: elided(&cell.text, usize::MAX), ..*cell }))
        .map(Iterator::collect)
        .collect();
    let count = shown.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        shown.iter().filter_map(|row| row.get(column)).map(|cell| width(&cell.text)).max()
    };
    let widths: Vec<usize> = (0..count).map(|column| widest(column).unwrap_or(0)).collect();
    shown.iter().map(|row| line(row, &widths, room)).collect()
}

fn line(row: &[Cell], widths: &[usize], room: usize) -> String {
    // Empty cells at the end of a row are left out, so that no trailing blanks are printed.
    let last = row.iter().rposition(|cell| !cell.text.trim_end().is_empty());
    let Some((head, cell)) = last.and_then(|last| Some((row.get(..last)?, row.get(last)?))) else {
        return "\n".to_owned();
    };
    let text = cell.text.trim_end();
    let before: usize = widths.iter().take(head.len()).map(|width| width + 2).sum();
    let mut begin = String::new();
    for (Cell { text, style, .. }, width) in head.iter().zip(widths) {
        begin.push_str(&style::painted(text, *style));
        begin.push_str(&" ".repeat(width.saturating_sub(self::width(text)) + 2));
    }
    if before + width(text) <= room {
        return begin + &style::painted(text, cell.style) + "\n";
    }
    let begins_apart = head.is_empty() || before + LEAST_ROOM > room;
    let indent = if begins_apart { own_lines(head) } else { " ".repeat(before) };
    let mut parts = broken(cell, room.saturating_sub(indent.len())).into_iter();
    let first = if begins_apart && !head.is_empty() {
        // The cells before the last one may be too wide as well.
        let head: Vec<&str> = head.iter().map(|cell| cell.text.trim_end()).collect();
        hanging("", OWN_LINES, head.join("  ").trim_end(), room)
    } else {
        begin + &parts.next().unwrap_or_default() + "\n"
    };
    first + &parts.map(|part| format!("{indent}{part}\n")).collect::<String>()
}

/// Returns the indentation of a last cell on lines of its own, which stands below the others.
fn own_lines(head: &[Cell]) -> String {
    let first = head.first().map_or("", |cell| &cell.text);
    " ".repeat(first.len() - first.trim_start().len()) + OWN_LINES
}

/// Breaks the text of a cell into painted lines.
fn broken(cell: &Cell, room: usize) -> Vec<String> {
    let text = cell.text.trim_end();
    let parts: Vec<String> = match cell.words {
        Words::Whole => flowing(text, room, room).into_iter().filter(|it| !it.is_empty()).collect(),
        Words::Broken => hanging("", "", text, room).lines().map(str::to_owned).collect(),
    };
    parts.iter().map(|part| style::painted(part, cell.style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_lines_are_indented() {
        let text = "x\nerror: host broken\n\tz\n";
        assert_eq!(indented(text, 0, usize::MAX, fitted), "x\n  error: host broken\n  \tz");
        assert_eq!(indented(text, 9, 13, fitted), "x\n  error: host\n  broken\n          z");
        assert_eq!(indented("one two three", 7, 13, flowing), "one\n  two three");
        // No text of others is broken by the terminal, which would go on at the left edge.
        for long in ["`0123 5678 012`", "0123\u{a0}5678\u{a0}012", "0\t1\t2"] {
            let text = indented(&format!("it says {long}"), 0, 13, fitted);
            assert!(text.lines().all(|line| width(line) <= 13 && !line.contains('\t')), "{text}");
            assert!(text.lines().skip(1).all(|line| line.starts_with(INDENT)), "{text}");
        }
    }

    #[test]
    fn usage_error_is_broken_and_its_command_is_not() {
        let text = "error: these are missing:\n  --from <P> (one, two)\n\nUsage: palisade dispatch --from <P>\n";
        let expected = "error: these are\n  missing:\n  --from <P> (one,\n    two)\n\nUsage: palisade dispatch --from <P>\n";
        assert_eq!(usage_within(text, 18), expected);
        assert_eq!(usage_within(text, usize::MAX), text);
    }

    #[test]
    fn sentence_in_a_table_keeps_its_paths_and_commands() {
        let row = |text: &str| vec![Cell::from("bad"), Cell::sentence(text)];
        let path = format!("/{}", "folder/".repeat(6));
        let shown = table_within(&[row(&format!("see {path} with `palisade list --json`"))], 32);
        let expected = format!("bad  see\n     {path}\n     with `palisade list --json`\n");
        assert_eq!(shown, expected);
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
