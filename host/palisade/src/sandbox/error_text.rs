//! Untrusted text in errors: bounded, printable and on one line.

use crate::tool::text::{cut, visible};

/// Returns an engine error on one line, without its backtrace, cut and made printable.
pub(crate) fn error_line(error: &wasmtime::Error) -> String {
    printable(&format!("{error:#}"))
}

/// Makes text of a plugin, or of a child that it may have compromised, printable on one line.
pub(crate) fn printable(text: &str) -> String {
    visible(cut(text, 1024)).replace('\n', " ")
}
