//! A guest that uses each host call: log, progress, emitted text, cancellation.

use palisade_guest::{Context, Level, tool};

/// Sends one message through each host call.
#[tool(side_effects = "none")]
fn speak(ctx: &Context) -> String {
    for (level, message) in [
        (Level::Trace, "one"),
        (Level::Debug, "two"),
        (Level::Info, "three"),
        (Level::Warn, "four"),
        (Level::Error, "five"),
    ] {
        ctx.log(level, message);
    }
    ctx.progress(1.0, None, "");
    ctx.progress(2.0, Some(4.0), "half");
    ctx.progress(f64::NAN, None, "not a number");
    ctx.emit("first ");
    ctx.emit("second");
    format!("cancelled: {}", ctx.cancelled())
}

palisade_guest::export!(speak);
