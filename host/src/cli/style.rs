//! Colours, on a terminal only.

use std::io::{self, IsTerminal as _};

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
    let plain = !terminal || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if plain { text.to_owned() } else { format!("\u{1b}[{code}m{text}\u{1b}[0m") }
}
