//! The scratch workspace of drawn calls, and the texts that inputs are drawn from.

use crate::case::{Content, Files};

/// Texts of the workspace, so that a drawn text may occur in a file.
pub(super) const WORDS: [&str; 8] =
    ["alpha", "one two", "needle", "*.txt", "3", "name", "2 + 3", "true"];

/// Texts that have broken programs.
pub(super) const HOSTILE: [&str; 14] = [
    "",
    " ",
    "\u{0}",
    "\u{1b}[31mred",
    "../../etc/passwd",
    "/etc/passwd",
    "%s%n%x",
    "'; DROP TABLE t; --",
    "{{7*7}}",
    "\u{202e}txt.exe",
    "e\u{301}\u{fe0f}\u{1f468}\u{200d}\u{1f469}",
    "\r\n\r\n",
    "[a-",
    "9999999999999999999999999999",
];

/// Paths of the workspace: files, two directories, and one that does not exist.
pub(super) const PATHS: [&str; 8] = [
    "notes.txt",
    "data/table.csv",
    "data/value.json",
    "empty",
    "data",
    "bytes.bin",
    "missing.txt",
    "hollow",
];

/// Returns the files before each drawn call.
pub(super) fn files() -> Files {
    let table = "name,count\nalpha,3\nbeta,5\n";
    let text = |text: &str| Content::Text(text.to_owned());
    Files::from([
        ("notes.txt".to_owned(), text("alpha\none two\nneedle in a line\n")),
        ("data/table.csv".to_owned(), text(table)),
        ("data/value.json".to_owned(), text("{\"name\": \"alpha\", \"list\": [1, 2, 3]}\n")),
        ("empty".to_owned(), text("")),
        ("bytes.bin".to_owned(), Content::of((0..=255).collect())),
        // A tool that removes directories shows itself here.
        ("hollow".to_owned(), Content::EmptyDirectory { entries: [] }),
    ])
}

/// Values of the formats of texts that JSON Schema names (draft 2020-12, validation, section 7.3).
/// Schemas do not check them, and tools read them.
pub(super) const FORMATS: [(&str, &[&str]); 10] = [
    ("date", &["2026-02-28", "2024-02-29", "1970-01-01", "9999-12-31"]),
    ("date-time", &["2026-02-28T12:30:00Z", "2024-02-29T23:59:59.5+14:00", "1970-01-01T00:00:00Z"]),
    ("time", &["12:30:00Z", "23:59:59.5+01:00", "00:00:00Z"]),
    ("duration", &["P1D", "PT30M", "P1Y2M3DT4H5M6S"]),
    ("email", &["a@example.org", "first.last+tag@mail.example.com"]),
    ("hostname", &["example.org", "a-b.example", "localhost"]),
    ("ipv4", &["192.0.2.1", "127.0.0.1", "0.0.0.0"]),
    ("ipv6", &["2001:db8::1", "::1", "::"]),
    ("uri", &["https://example.org/a?b=c#d", "mailto:a@example.org", "file:///a"]),
    ("uuid", &["123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000"]),
];
