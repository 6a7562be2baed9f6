//! The line format of the log on standard error.

use super::output::INDENT;
use std::io::{self, Write};

/// A writer that receives one event per write and indents every line after the first. An event may
/// quote a plugin, whose lines must not look like the program's own.
pub(super) struct Indented<W>(pub(super) W);

impl<W: Write> Write for Indented<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let (text, end) = match event.strip_suffix(b"\n") {
            Some(text) => (text, &b"\n"[..]),
            None => (event, &b""[..]),
        };
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let text = lines.join(format!("\n{INDENT}").as_bytes());
        self.0.write_all(&[&text, end].concat())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn continuation_lines_of_an_event_are_indented() {
        let mut written = Vec::new();
        for event in ["DEBUG one\n", "DEBUG said\nERROR forged\n\nmore\n"] {
            Indented(&mut written).write_all(event.as_bytes()).unwrap();
        }
        let text = String::from_utf8(written).unwrap();
        assert_eq!(text, "DEBUG one\nDEBUG said\n  ERROR forged\n  \n  more\n");
    }
}
