//! A guest with arguments of every shape that the SDK derives a schema for.

use std::collections::BTreeMap;

use palisade_guest::{Json, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Args {
    /// At least 1 and at most 9.
    #[schemars(range(min = 1, max = 9))]
    count: u8,
    /// Letters only.
    #[schemars(regex(pattern = r"^[a-z]+$"))]
    word: Option<String>,
    #[serde(default)]
    tags: Vec<Tag>,
    #[serde(default)]
    map: BTreeMap<String, i64>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Tag {
    kind: Kind,
    value: f64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Red,
    Green,
}

/// Returns its arguments.
#[tool(side_effects = "none")]
fn typed(args: Args) -> Json<Args> {
    Json(args)
}

palisade_guest::export!(typed);
