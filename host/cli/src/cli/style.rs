//! Colours for terminals. Text is escaped before it is coloured, so that it cannot draw by itself.

use palisade::tool::text::visible;
use std::io::{self, IsTerminal as _};

/// The style of a table cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Unstyled.
    Plain,
    /// The style of [`heading`].
    Heading,
}

/// Applies a style to text for standard output.
pub(super) fn painted(text: &str, style: Style) -> String {
    match style {
        Style::Plain => visible(text),
        Style::Heading => heading(text),
    }
}

/// Highlights an error on standard error.
pub(super) fn error(text: &str) -> String {
    paint(text, "1;31", io::stderr().is_terminal())
}

/// Highlights a heading on standard output.
pub(super) fn heading(text: &str) -> String {
    paint(text, "1", io::stdout().is_terminal())
}

/// Dims secondary text on standard output.
pub(super) fn faint(text: &str) -> String {
    paint(text, "2", io::stdout().is_terminal())
}

/// Returns a text without the colours of this module.
pub(super) fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}

fn paint(text: &str, code: &str, terminal: bool) -> String {
    let text = visible(text);
    let plain = !terminal || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if plain { text } else { format!("\u{1b}[{code}m{text}\u{1b}[0m") }
}
