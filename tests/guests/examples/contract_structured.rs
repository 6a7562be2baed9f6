//! A guest with an output schema that its results may violate.

use palisade_guest::{Content, IntoOutput, Output, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The output to return.
    give: String,
}

/// An output that may violate its schema.
struct Promised(Output);

impl IntoOutput for Promised {
    fn into_output(self) -> Result<Output> {
        Ok(self.0)
    }

    fn output_schema() -> Option<Value> {
        Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}))
    }
}

/// Declares an output with an integer `n`, and may return another one.
#[tool(side_effects = "none")]
fn promise(args: Args) -> Result<Promised> {
    let one = Content::json(&json!({"n": 1}))?;
    Ok(Promised(match args.give.as_str() {
        "right" => Output::new(vec![one]),
        "wrong" => Output::json(&json!({"n": "one"}))?,
        "twice" => Output::new(vec![one.clone(), one]),
        "text" => Output::text("1"),
        "nothing" => Output::new(Vec::new()),
        _ => Output::text("it could not be counted").failure(),
    }))
}

palisade_guest::export!(promise);
