//! Colours, on a terminal only. What is painted is escaped first: nothing in it can draw on a terminal by itself.

use crate::tool::text::visible;
use std::io::{self, IsTerminal as _};

/// How a cell of a table looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// As it is.
    Plain,
    /// As [`heading`] marks it.
    Heading,
}

/// Text of standard output in a style.
pub(super) fn painted(text: &str, style: Style) -> String {
    match style {
        Style::Plain => visible(text),
        Style::Heading => heading(text),
    }
}

/// Marks an error.
pub(super) fn error(text: &str) -> String {
    paint(text, "1;31", io::stderr().is_terminal())
}

/// Marks a heading on standard output.
pub(super) fn heading(text: &str) -> String {
    paint(text, "1", io::stdout().is_terminal())
}

/// Marks what matters less, on standard output.
pub(super) fn faint(text: &str) -> String {
    paint(text, "2", io::stdout().is_terminal())
}

fn paint(text: &str, code: &str, terminal: bool) -> String {
    let text = visible(text);
    let plain = !terminal || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if plain { text } else { format!("\u{1b}[{code}m{text}\u{1b}[0m") }
}
