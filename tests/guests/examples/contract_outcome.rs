//! A guest that fills every field of the output record.

use palisade_guest::{Output, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// Whether the outcome is a failure.
    #[serde(default)]
    fail: bool,
    /// Whether the output has a text.
    #[serde(default)]
    silent: bool,
}

/// Reports work that it has not done.
#[tool(side_effects = "none")]
fn report(args: Args) -> Output {
    let text =
        if args.silent { Output::new(Vec::new()) } else { Output::text("2 of 3 tests pass") };
    let output = text
        .metadata("stop_loop", true)
        .metadata("files_modified_unlisted", 7)
        .metadata("secret", serde_json::json!({"of": "the caller"}))
        .modified("claimed.txt")
        .command("make test");
    if args.fail { output.failure() } else { output }
}

/// Writes a file without reporting it.
#[tool(side_effects = "write")]
fn touch() -> Result<()> {
    Ok(std::fs::write("touched.txt", "12345")?)
}

/// Writes a file and then fails.
#[tool(side_effects = "write")]
fn touch_and_fail() -> Result<()> {
    std::fs::write("touched.txt", "12345")?;
    Err(palisade_guest::Error::failed("half-way"))
}

palisade_guest::export!(report, touch, touch_and_fail);
