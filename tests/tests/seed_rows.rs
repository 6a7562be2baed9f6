//! Tests that every required behaviour has a row in `seed-rows.md`, and that every test named there
//! exists.

use std::collections::BTreeMap;

use palisade_tests::rows::{self, Row, tests};

/// The required rows: the letters before the dot, and their number.
const ROWS: [(&str, usize); 5] = [("S1", 12), ("S2", 11), ("S3", 6), ("S4", 37), ("C", 6)];

/// The required rows whose behaviour does not exist yet. Each row says so in place of its tests.
const MISSING: [&str; 0] = [];

fn rows() -> Vec<Row> {
    rows::rows("seed-rows.md", |name| name.contains('.') && !name.contains(' '))
}

#[test]
fn every_row_exists_once_and_in_order() {
    let rows = rows();
    for (seed, count) in ROWS {
        let prefix = format!("{seed}.");
        let names: Vec<&str> = rows
            .iter()
            .map(|row| row.name.as_str())
            .filter(|name| name.starts_with(&prefix))
            .collect();
        let expected: Vec<String> = (1..=count).map(|number| format!("{seed}.{number}")).collect();
        assert_eq!(names, expected);
    }
    assert!(rows.iter().all(|row| !row.behaviour.is_empty()));
}

#[test]
fn every_row_names_existing_tests() {
    let tests = tests();
    assert!(tests.len() > 200, "the suites were found: {}", tests.len());
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows().into_iter().filter(|row| !MISSING.contains(&row.name.as_str())) {
        let missing: Vec<String> =
            row.tests.iter().filter(|test| !tests.contains(*test)).cloned().collect();
        if row.tests.is_empty() || !missing.is_empty() {
            wrong.insert(row.name, missing);
        }
    }
    assert_eq!(wrong, BTreeMap::new(), "rows without tests, or with tests that do not exist");
}

#[test]
fn missing_rows_are_named_as_missing() {
    let is_missing = |row: &Row| row.tests.is_empty() && row.text.starts_with("missing: ");
    let missing: Vec<String> = rows().into_iter().filter(is_missing).map(|row| row.name).collect();
    assert_eq!(missing, MISSING, "a row with tests is not missing, and no other row may be");
}
