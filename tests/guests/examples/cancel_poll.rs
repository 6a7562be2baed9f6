//! A guest that polls for cancellation, and then reacts to it in different ways.

use palisade_guest::{Context, Error, Result, tool};

/// Polls, and cleans up after the cancellation.
#[tool(side_effects = "write")]
fn tidy(ctx: &Context) -> Result<String> {
    wait(ctx);
    std::fs::write("tidied.txt", "yes")?;
    ctx.emit("tidied");
    Err(Error::cancelled())
}

/// Polls, and claims success after the cancellation.
#[tool(side_effects = "none")]
fn pretend(ctx: &Context) -> String {
    wait(ctx);
    "nothing happened".to_owned()
}

/// Polls, and never ends after the cancellation.
#[tool(side_effects = "none")]
fn ignore(ctx: &Context) -> String {
    wait(ctx);
    ctx.emit("ignored");
    loop {
        std::hint::black_box(0);
    }
}

fn wait(ctx: &Context) {
    let _ = ctx.cancelled();
    ctx.warn("started");
    ctx.emit("started");
    while !ctx.cancelled() {}
}

palisade_guest::export!(tidy, pretend, ignore);
