//! A guest that uses every field of the definition record.

use palisade_guest::{Json, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The count.
    #[serde(default)]
    count: u32,
}

#[derive(Serialize, JsonSchema)]
struct Counted {
    /// The resulting count.
    counted: u32,
}

/// Has every field.
///
/// And a second paragraph.
#[tool(
    side_effects = "read",
    name = "every_field",
    title = "Every field",
    idempotent,
    timeout = "1500ms",
    metadata = r#"{"vendor": {"key": [1, 2]}}"#
)]
fn all(args: Args) -> Json<Counted> {
    Json(Counted { counted: args.count })
}

/// Has only what it must have.
#[tool(side_effects = "none")]
fn bare() -> &'static str {
    "bare"
}

/// Writes.
#[tool(side_effects = "write")]
fn writes() {}

/// Executes.
#[tool(side_effects = "execute")]
fn executes() {}

/// Sends.
#[tool(side_effects = "network")]
fn sends() {}

palisade_guest::export!(all, bare, writes, executes, sends);
