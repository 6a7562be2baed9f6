//! A guest with results and inputs in JSON that need far more memory as a value than as text.

use palisade_guest::{Content, IntoOutput, Output, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The number of elements or members.
    count: usize,
}

/// Returns a list of small objects: 3.5 MB of text, which take 329 MiB with a map for each object.
fn objects(count: usize) -> Content {
    Content::Json(format!("[{}]", vec![r#"{"":0}"#; count].join(",")))
}

/// Returns a list of objects with one member each.
#[tool(side_effects = "none")]
fn expand(args: Args) -> Result<Vec<Content>> {
    Ok(vec![objects(args.count)])
}

/// Returns an object whose members are not sorted.
#[tool(side_effects = "none")]
fn shuffle(args: Args) -> Result<Vec<Content>> {
    let members: Vec<String> = (0..args.count).rev().map(|key| format!("\"{key:06}\":0")).collect();
    Ok(vec![Content::Json(format!("{{{}}}", members.join(",")))])
}

/// An output with a schema, so that the host validates the output.
struct Promised(Content);

impl IntoOutput for Promised {
    fn into_output(self) -> Result<Output> {
        Ok(Output::new(vec![self.0]))
    }

    fn output_schema() -> Option<Value> {
        Some(json!({"type": "array", "items": {"type": "object"}}))
    }
}

/// Returns the same list, with an output schema.
#[tool(side_effects = "none")]
fn expand_promised(args: Args) -> Result<Promised> {
    Ok(Promised(objects(args.count)))
}

/// Returns the number of elements of a list.
#[tool(side_effects = "none")]
fn length(args: Listed) -> Result<String> {
    Ok(args.items.len().to_string())
}

#[derive(Deserialize, JsonSchema)]
struct Listed {
    /// The elements.
    items: Vec<Value>,
}

palisade_guest::export!(expand, shuffle, expand_promised, length);
