//! The benign guest: returns its text.

use palisade_guest::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The text.
    text: String,
}

/// Returns the text.
#[tool(side_effects = "none")]
fn echo(args: Args) -> String {
    args.text
}

palisade_guest::export!(echo);
