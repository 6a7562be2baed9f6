//! Tests that the crate's copy of the contract is current. A package cannot include files from
//! outside its folder.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Returns the files of a folder, keyed by name.
fn files(folder: &str) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), read(&entry.path()))).collect()
}

#[test]
fn contract_copy_equals_the_contract() {
    let contract = files("../wit");
    assert!(contract.contains_key("world.wit"));
    assert_eq!(files("wit"), contract);
}
