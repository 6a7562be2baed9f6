//! A guest that ends a call by a panic or an exit instead of returning.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what becomes of standard output is the question"
)]

use palisade_guest::{Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The way to end.
    how: String,
}

/// Ends in the requested way.
#[tool(side_effects = "none")]
fn end(args: Args) -> Result<String> {
    println!("on standard output");
    match args.how.as_str() {
        "panic" => panic!("these are my last words"),
        "exit-0" => std::process::exit(0),
        "exit-3" => {
            eprintln!("leaving");
            std::process::exit(3)
        }
        "index" => Ok(format!("{}", [1][args.how.len()])),
        _ => Ok("returned".to_owned()),
    }
}

palisade_guest::export!(end);
