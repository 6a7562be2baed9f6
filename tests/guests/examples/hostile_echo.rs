//! The benign guest: returns its text.

use palisade_guest::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// What to say.
    text: String,
}

/// Says it.
#[tool(side_effects = "none")]
fn echo(args: Args) -> String {
    args.text
}

palisade_guest::export!(echo);
