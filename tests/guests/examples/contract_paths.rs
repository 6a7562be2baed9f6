//! A guest with paths as arguments, in each place where the host looks for them.

use palisade_guest::{Result, WorkspacePath, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// A file.
    path: WorkspacePath,
    /// More files.
    #[serde(default)]
    more: Vec<WorkspacePath>,
    /// A text that resembles a path.
    #[serde(default)]
    text: String,
}

/// Returns its arguments as received.
#[tool(side_effects = "read")]
fn arrived(args: Args) -> String {
    let more: Vec<&str> = args.more.iter().map(WorkspacePath::as_str).collect();
    format!("{} [{}] {}", args.path, more.join(" "), args.text)
}

/// Opens a file by its relative path and by the same path below `/`.
#[tool(side_effects = "read")]
fn both_ways(args: Args) -> Result<String> {
    let relative = std::fs::read_to_string(&args.path)?;
    let absolute = std::fs::read_to_string(format!("/{}", args.path))?;
    Ok(format!("{relative}|{absolute}|{}", std::env::current_dir()?.display()))
}

palisade_guest::export!(arrived, both_ways);
