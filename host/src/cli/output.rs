//! Writing to standard output, where every failure counts.

use super::exit::Failure;
use crate::tool::text::{elided, visible, visible_json};
use serde_json::Value;
use std::io::{self, IsTerminal as _, Write as _};

/// How much of a label is shown, in characters: it may hold a name that a model made up.
const MAX_LABEL: usize = 160;

/// Prints lines of text.
pub(super) fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a tool's output as it is; on a terminal the next prompt still starts on a line of its own.
pub(super) fn verbatim(output: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(output.as_bytes())?;
    if io::stdout().is_terminal() && !output.ends_with('\n') && !output.is_empty() {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Prints one JSON value, indented, with nothing in it that could play tricks on a terminal.
pub(super) fn json(value: &Value) -> Result<(), Failure> {
    text(&(visible_json(&format!("{value:#}")) + "\n"))
}

/// Says a line on standard error, with nothing in it that could play tricks on a terminal. If nobody can be told, there is nobody to tell about that.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(line));
}

/// As [`note`], behind a label that stands out.
pub(super) fn problem(label: &str, line: &str) {
    let label = super::style::error(&elided(label, MAX_LABEL));
    let _ = writeln!(io::stderr().lock(), "{label} {}", visible(line));
}

/// Lines up columns; the last one is as wide as it is.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        line.push_str(cell);
        if index + 1 < row.len() {
            line.push_str(&" ".repeat(width.saturating_sub(cell.chars().count()) + 2));
        }
    }
    line.trim_end().to_owned() + "\n"
}
