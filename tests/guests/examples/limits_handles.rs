//! A guest that holds a given number of handles.

use std::fs::File;

use palisade_guest::{Context, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The count.
    count: usize,
}

/// Opens the same file this number of times, without closing it.
#[tool(side_effects = "read")]
fn hold(args: Args) -> Result<String> {
    let held =
        (0..args.count).map(|_| File::open("file.txt")).collect::<std::io::Result<Vec<_>>>()?;
    Ok(format!("{} held", held.len()))
}

/// Opens the same file this number of times, reports it, and holds the handles until it is stopped.
#[tool(side_effects = "read")]
fn hold_for_ever(args: Args, ctx: &Context) -> Result<String> {
    let held =
        (0..args.count).map(|_| File::open("file.txt")).collect::<std::io::Result<Vec<_>>>()?;
    ctx.emit("started");
    std::thread::sleep(std::time::Duration::from_secs(3600));
    Ok(format!("{} held", held.len()))
}

/// Starts this number of listings of the workspace, without ending them.
#[tool(side_effects = "read")]
fn hold_listings(args: Args) -> Result<String> {
    let held =
        (0..args.count).map(|_| std::fs::read_dir(".")).collect::<std::io::Result<Vec<_>>>()?;
    Ok(format!("{} held", held.len()))
}

/// Opens the same file this number of times, and closes it each time.
#[tool(side_effects = "read")]
fn reuse(args: Args) -> Result<String> {
    for _ in 0..args.count {
        File::open("file.txt")?;
    }
    Ok(format!("{} opened", args.count))
}

palisade_guest::export!(hold, hold_for_ever, hold_listings, reuse);
