//! A guest that computes forever without polling for cancellation.

use palisade_guest::{Context, tool};

/// Reports its start, and computes.
#[tool(side_effects = "none")]
fn compute(ctx: &Context) -> String {
    ctx.warn("started");
    ctx.emit("started");
    loop {
        std::hint::black_box(0);
    }
}

palisade_guest::export!(compute);
