//! Tests of the plugin's contract: names, classes, inputs, and reported changes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::{delete_file, list_dir, patch_file, read_file, write_file};
use palisade_guest::{SideEffects, Tool, testing};
use serde_json::{Value, json};
use std::fs;

/// Returns a tool's class, whether it is idempotent, and the names of its inputs and required
/// inputs.
fn contract<T: Tool>() -> (SideEffects, bool, Vec<String>, Value) {
    let (definition, schema) = (testing::definition::<T>(), testing::input_schema::<T>());
    let inputs = schema["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(schema["properties"]["path"]["format"], "workspace-path");
    assert!(
        schema["properties"]
            .as_object()
            .unwrap()
            .values()
            .all(|input| input["description"].is_string())
    );
    (definition.side_effects, definition.idempotent, inputs, schema["required"].clone())
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn reading_tools_have_class_read() {
    let inputs = names(&["end_line", "limit", "path", "start_line"]);
    assert_eq!(contract::<read_file>(), (SideEffects::Read, true, inputs, json!(["path"])));
    assert_eq!(contract::<list_dir>(), (SideEffects::Read, true, names(&["path"]), Value::Null));
}

#[test]
fn changing_tools_have_class_write() {
    let inputs = names(&["content", "path"]);
    assert_eq!(
        contract::<write_file>(),
        (SideEffects::Write, true, inputs, json!(["path", "content"]))
    );
    let inputs = names(&["new", "old", "path"]);
    assert_eq!(
        contract::<patch_file>(),
        (SideEffects::Write, false, inputs, json!(["path", "old", "new"]))
    );
    assert_eq!(
        contract::<delete_file>(),
        (SideEffects::Write, true, names(&["path"]), json!(["path"]))
    );
}

#[test]
fn call_inputs_reach_the_tools_and_changes_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").to_str().unwrap().to_owned();
    let modified = std::slice::from_ref(&path);

    let written = testing::call::<write_file>(json!({"path": path, "content": "a\nb\n"})).unwrap();
    assert_eq!(written.files_modified(), modified);
    let patched =
        testing::call::<patch_file>(json!({"path": path, "old": "b", "new": "c"})).unwrap();
    assert_eq!(patched.files_modified(), modified);
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\nc\n");
    assert_eq!(
        testing::call::<read_file>(json!({"path": path, "start_line": 1})).unwrap().to_text(),
        "c\n"
    );
    let listed = testing::call::<list_dir>(json!({"path": directory.path()})).unwrap();
    assert_eq!(listed.to_text(), "f (4 bytes)\n");
    assert!(listed.files_modified().is_empty());
    let deleted = testing::call::<delete_file>(json!({"path": path})).unwrap();
    assert_eq!(deleted.files_modified(), modified);
    assert!(!fs::exists(&path).unwrap());
}
