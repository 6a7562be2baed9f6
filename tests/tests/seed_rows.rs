//! The promise of the table: every behaviour that was asked for has a row in `seed-rows.md`, and every test that a row names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rows that must be there: the letter before the dot, and how many.
const ROWS: [(&str, usize); 5] = [("S1", 12), ("S2", 11), ("S3", 6), ("S4", 36), ("C", 6)];

/// One row of the table.
struct Row {
    name: String,
    behaviour: String,
    tests: Vec<String>,
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(here().join("seed-rows.md")).expect("the table is there");
    text.lines().filter_map(row).collect()
}

/// Reads a line of the table; its head and everything around it is no row.
fn row(line: &str) -> Option<Row> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let name = cells.next().filter(|name| name.contains('.') && !name.contains(' '))?.to_owned();
    let behaviour = cells.next()?.to_owned();
    let tests = cells.next()?.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Some(Row { name, behaviour, tests })
}

/// Every test of the suites, by suite, module and function.
fn tests() -> BTreeSet<String> {
    let suites = fs::read_dir(here().join("tests")).expect("the suites are there");
    let mut found = BTreeSet::new();
    for suite in suites.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let name = suite.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        collect(&suite, &name, &mut found);
    }
    found
}

fn collect(file: &Path, name: &str, found: &mut BTreeSet<String>) {
    let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    for (number, line) in lines.iter().enumerate() {
        if *line == "#[test]" {
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

#[test]
fn every_row_is_there_once_and_in_order() {
    let rows = rows();
    for (seed, count) in ROWS {
        let prefix = format!("{seed}.");
        let names: Vec<&str> =
            rows.iter().map(|row| row.name.as_str()).filter(|name| name.starts_with(&prefix)).collect();
        let expected: Vec<String> = (1..=count).map(|number| format!("{seed}.{number}")).collect();
        assert_eq!(names, expected);
    }
    assert!(rows.iter().all(|row| !row.behaviour.is_empty()));
}

#[test]
fn every_row_names_tests_and_every_test_exists() {
    let tests = tests();
    assert!(tests.len() > 200, "the suites were found: {}", tests.len());
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows() {
        let missing: Vec<String> = row.tests.iter().filter(|test| !tests.contains(*test)).cloned().collect();
        if row.tests.is_empty() || !missing.is_empty() {
            wrong.insert(row.name, missing);
        }
    }
    assert_eq!(wrong, BTreeMap::new(), "rows without tests, or with tests that do not exist");
}
