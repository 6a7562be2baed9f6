//! Tests of the plugin's contract: names, classes and inputs.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::{find_files, search_files};
use palisade_guest::{SideEffects, Tool, testing};
use serde_json::json;

/// Returns the names of a tool's inputs. Asserts that the tool only reads and only requires a
/// pattern.
fn inputs<T: Tool>() -> Vec<String> {
    let (definition, schema) = (testing::definition::<T>(), testing::input_schema::<T>());
    assert_eq!((definition.side_effects, definition.idempotent), (SideEffects::Read, true));
    assert_eq!(schema["required"], json!(["pattern"]));
    assert_eq!(schema["properties"]["path"]["format"], "workspace-path");
    assert!(
        schema["properties"]
            .as_object()
            .unwrap()
            .values()
            .all(|input| input["description"].is_string())
    );
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn only_the_pattern_is_required() {
    assert_eq!(inputs::<find_files>(), ["path", "pattern"]);
    assert_eq!(inputs::<search_files>(), ["context", "path", "pattern"]);
}
