//! Tables in the documentation of the suites, whose rows name tests that must exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A row of a table.
#[derive(Debug, Clone)]
pub struct Row {
    /// The text of the first cell.
    pub name: String,
    /// The text of the second cell.
    pub behaviour: String,
    /// The names in backquotes in the third cell, which are tests.
    pub tests: Vec<String>,
    /// The text of the third cell.
    pub text: String,
}

/// Returns the rows of a table in a file of this package. A row is a line whose first cell
/// `is_name` accepts.
///
/// # Panics
///
/// If the file cannot be read.
#[must_use]
pub fn rows(table: &str, is_name: impl Fn(&str) -> bool) -> Vec<Row> {
    let text = fs::read_to_string(here().join(table)).expect("the table is there");
    text.lines().filter_map(|line| row(line, &is_name)).collect()
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Parses a line, or returns `None` if it is not a row.
fn row(line: &str, is_name: impl Fn(&str) -> bool) -> Option<Row> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let name = cells.next().filter(|name| is_name(name))?.to_owned();
    let behaviour = cells.next()?.to_owned();
    let text = cells.next()?.to_owned();
    let tests = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Some(Row { name, behaviour, tests, text })
}

/// The crates of the host, by the folder of their sources.
const HOST: [(&str, &str); 8] = [
    ("../host/palisade/src", "palisade"),
    ("../host/formats/src", "palisade_formats"),
    ("../host/shell/src", "palisade_shell"),
    ("../host/wasi-fs/src", "palisade_wasi_fs"),
    ("../host/mcp/src", "palisade_mcp"),
    ("../host/net/src", "palisade_net"),
    ("../host/server/src", "palisade_server"),
    ("../host/cli/src", "palisade_cli"),
];

/// Returns the names of all tests: those of the suites by suite, module and function, and the unit
/// tests of the host by their crate, the path of their file and function.
///
/// # Panics
///
/// If a source file cannot be read.
#[must_use]
pub fn tests() -> BTreeSet<String> {
    let suites = fs::read_dir(here().join("tests")).expect("the suites are there");
    let mut found = BTreeSet::new();
    for suite in suites
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
    {
        let name = suite.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        collect(&suite, &name, &mut found);
    }
    for (folder, name) in HOST {
        below(&here().join(folder), name, &mut found);
    }
    found
}

/// Adds the unit tests of a crate, each with the path of its file.
fn below(folder: &Path, name: &str, found: &mut BTreeSet<String>) {
    for path in
        fs::read_dir(folder).expect("the sources are there").flatten().map(|entry| entry.path())
    {
        let name = format!("{name}::{}", path.file_stem().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            below(&path, &name, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            collect(&path, &name, found);
        }
    }
}

fn collect(file: &Path, name: &str, found: &mut BTreeSet<String>) {
    let source =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    for (number, line) in lines.iter().enumerate() {
        if *line == "#[test]" || line.starts_with("#[tokio::test") {
            found.extend(function(&lines[number..]).map(|function| format!("{name}::{function}")));
        }
        if let Some(path) =
            line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]"))
        {
            let module =
                lines.get(number + 1).and_then(|next| next.strip_prefix("mod ")?.strip_suffix(';'));
            let module =
                module.unwrap_or_else(|| panic!("{}: a path without a module", file.display()));
            collect(&file.with_file_name(path), &format!("{name}::{module}"), found);
        }
    }
}

/// Returns the name of the function that follows the attribute.
fn function<'a>(lines: &[&'a str]) -> Option<&'a str> {
    lines.iter().find_map(|line| {
        line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn "))?.split('(').next()
    })
}
