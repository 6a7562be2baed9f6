//! A guest that counts its calls in a static, which no other call may share.

use std::sync::atomic::{AtomicU32, Ordering};

use palisade_guest::{Context, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

static CALLS: AtomicU32 = AtomicU32::new(0);

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// A text to return, which distinguishes the answers.
    #[serde(default)]
    text: String,
}

/// Returns the number of calls that it has seen.
#[tool(side_effects = "none")]
fn count(args: Args) -> String {
    format!("{} {}", CALLS.fetch_add(1, Ordering::SeqCst) + 1, args.text)
}

/// Returns the number of calls as well, after emitting its text and polling for cancellation, which
/// lets other calls run.
#[tool(side_effects = "none")]
fn count_slowly(args: Args, ctx: &Context) -> String {
    ctx.emit(&args.text);
    std::thread::sleep(std::time::Duration::from_millis(5));
    count(args)
}

/// Appends a line to its own file.
#[tool(side_effects = "write")]
fn append(args: Args) -> Result<()> {
    Ok(std::fs::write(format!("{}.txt", args.text), &args.text)?)
}

palisade_guest::export!(count, count_slowly, append);
