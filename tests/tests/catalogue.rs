//! Tests that each case of the catalogue has a row in `catalogue.md`, which names its tests or says
//! why there is none.

use std::collections::BTreeMap;

use palisade_tests::rows::{self, Row, tests};

/// The number of cases.
const CASES: usize = 113;

fn rows() -> Vec<Row> {
    rows::rows("catalogue.md", |name| name.parse::<usize>().is_ok())
}

/// Returns why a case has no test: `skipped: …` permanently, `(pending: …)` until its prerequisite
/// exists.
fn excuse(row: &Row) -> Option<&str> {
    let at = row.text.find("skipped: ").or_else(|| row.text.find("(pending: "))?;
    row.text.get(at..).filter(|why| why.len() > "(pending: ".len() + 5)
}

#[test]
fn every_case_has_a_row_in_order() {
    let names: Vec<String> = rows().into_iter().map(|row| row.name).collect();
    assert_eq!(names, (1..=CASES).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(rows().iter().all(|row| !row.behaviour.is_empty()));
}

#[test]
fn every_case_has_existing_tests_or_a_reason() {
    let tests = tests();
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows() {
        let missing: Vec<String> = row
            .tests
            .iter()
            .filter(|name| name.contains("::") && !tests.contains(*name))
            .cloned()
            .collect();
        let named = row.tests.iter().any(|name| name.contains("::"));
        if !missing.is_empty() || (!named && excuse(&row).is_none()) {
            wrong.insert(row.name, missing);
        }
    }
    assert_eq!(
        wrong,
        BTreeMap::new(),
        "cases without tests or excuse, or with tests that do not exist"
    );
}

#[test]
fn skipped_cases_are_reported() {
    for row in rows() {
        if let Some(why) = excuse(&row) {
            palisade_tests::skip(&format!(
                "case {}: {}",
                row.name,
                why.trim_start_matches("skipped: ")
            ));
        }
    }
}
