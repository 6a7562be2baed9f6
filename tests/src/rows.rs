//! Tables in the documents of the suites: each row names tests, and every test that is named exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One row of a table.
#[derive(Debug, Clone)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// What it is about.
    pub behaviour: String,
    /// The tests that it names.
    pub tests: Vec<String>,
    /// The cell that names them, as written.
    pub text: String,
}

/// The rows of a table in this directory.
///
/// # Panics
///
/// Where it cannot be read.
#[must_use]
pub fn rows(table: &str, is_name: impl Fn(&str) -> bool) -> Vec<Row> {
    let text = fs::read_to_string(here().join(table)).expect("the table is there");
    text.lines().filter_map(|line| row(line, &is_name)).collect()
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Reads a line of the table; its head and everything around it is no row.
fn row(line: &str, is_name: impl Fn(&str) -> bool) -> Option<Row> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let name = cells.next().filter(|name| is_name(name))?.to_owned();
    let behaviour = cells.next()?.to_owned();
    let text = cells.next()?.to_owned();
    let tests = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Some(Row { name, behaviour, tests, text })
}

/// Every test of the suites, by suite, module and function, and every unit test of the host, by `palisade`, the path of its file and function.
///
/// # Panics
///
/// Where the sources cannot be read.
#[must_use]
pub fn tests() -> BTreeSet<String> {
    let suites = fs::read_dir(here().join("tests")).expect("the suites are there");
    let mut found = BTreeSet::new();
    for suite in suites.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let name = suite.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        collect(&suite, &name, &mut found);
    }
    below(&here().join("../host/src"), "palisade", &mut found);
    found
}

/// The unit tests of a crate, each under the path of its file.
fn below(folder: &Path, name: &str, found: &mut BTreeSet<String>) {
    for path in fs::read_dir(folder).expect("the sources are there").flatten().map(|entry| entry.path()) {
        let name = format!("{name}::{}", path.file_stem().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            below(&path, &name, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            collect(&path, &name, found);
        }
    }
}

fn collect(file: &Path, name: &str, found: &mut BTreeSet<String>) {
    let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    for (number, line) in lines.iter().enumerate() {
        if *line == "#[test]" || line.starts_with("#[tokio::test") {
            found.extend(function(&lines[number..]).map(|function| format!("{name}::{function}")));
        }
        if let Some(path) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            let module = lines.get(number + 1).and_then(|next| next.strip_prefix("mod ")?.strip_suffix(';'));
            let module = module.unwrap_or_else(|| panic!("{}: a path without a module", file.display()));
            collect(&file.with_file_name(path), &format!("{name}::{module}"), found);
        }
    }
}

/// The name of the function below `#[test]`.
fn function<'a>(lines: &[&'a str]) -> Option<&'a str> {
    lines.iter().find_map(|line| line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn "))?.split('(').next())
}
