//! A guest that sleeps for longer than any test runs.

use std::time::Duration;

use palisade_guest::{Context, tool};

/// Reports its start, and sleeps.
#[tool(side_effects = "none")]
fn sleep(ctx: &Context) -> String {
    ctx.warn("started");
    ctx.emit("started");
    std::thread::sleep(Duration::from_secs(3600));
    "slept".to_owned()
}

palisade_guest::export!(sleep);
