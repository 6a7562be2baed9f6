//! A guest that produces a given amount of output, through each channel.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what becomes of standard output is the question"
)]

use palisade_guest::{Content, Context, Output, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The number of bytes.
    bytes: usize,
}

/// Returns one block of text.
#[tool(side_effects = "none")]
fn text(args: Args) -> String {
    "x".repeat(args.bytes)
}

/// Returns many small blocks.
#[tool(side_effects = "none")]
fn blocks(args: Args) -> Vec<Content> {
    vec![Content::text("x".repeat(1024)); args.bytes / 1024]
}

/// Returns this amount of metadata.
#[tool(side_effects = "none")]
fn metadata(args: Args) -> Output {
    Output::text("done").metadata("k", "x".repeat(args.bytes))
}

/// Claims changes of files whose names have this number of bytes in all.
#[tool(side_effects = "none")]
fn files(args: Args) -> Output {
    (0..args.bytes / 1024).fold(Output::text("done"), |output, _| output.modified("f".repeat(1024)))
}

/// Prints this amount on standard output and on standard error.
#[tool(side_effects = "none")]
fn print(args: Args) -> &'static str {
    for _ in 0..args.bytes / 1024 {
        print!("{}", "o".repeat(1024));
        eprint!("{}", "e".repeat(1024));
    }
    "printed"
}

/// Logs this amount.
#[tool(side_effects = "none")]
fn log(args: Args, ctx: &Context) -> &'static str {
    (0..args.bytes / 1024).for_each(|_| ctx.info(&"l".repeat(1024)));
    "logged"
}

/// Logs one message of this number of bytes.
#[tool(side_effects = "none")]
fn log_one(args: Args, ctx: &Context) -> &'static str {
    ctx.info(&"l".repeat(args.bytes));
    "logged"
}

/// Reports this number of progress steps.
#[tool(side_effects = "none")]
fn progress(args: Args, ctx: &Context) -> &'static str {
    (0_u32..).take(args.bytes).for_each(|step| ctx.progress(step.into(), None, ""));
    "progressed"
}

/// Emits this amount.
#[tool(side_effects = "none")]
fn emit(args: Args, ctx: &Context) -> &'static str {
    (0..args.bytes / 1024).for_each(|_| ctx.emit(&"m".repeat(1024)));
    "emitted"
}

palisade_guest::export!(text, blocks, metadata, files, print, log, log_one, progress, emit);
