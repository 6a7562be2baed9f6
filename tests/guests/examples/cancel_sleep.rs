//! A guest that sleeps for longer than any test runs.

use std::time::Duration;

use palisade_guest::{Context, tool};

/// Reports its start, and sleeps.
#[tool(side_effects = "none")]
fn sleep(ctx: &Context) -> String {
    // The warning is shown at once, so that a reader of it knows that the text was emitted.
    ctx.emit("started");
    ctx.warn("started");
    std::thread::sleep(Duration::from_secs(3600));
    "slept".to_owned()
}

palisade_guest::export!(sleep);
