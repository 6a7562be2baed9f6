//! The promise to every MCP client: what it is shown, what it may ask, what it hears, and how it ends what it has begun.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "mcp/confirm.rs"]
mod confirm;
#[path = "mcp/lines.rs"]
mod lines;
#[path = "mcp/mcp_conformance.rs"]
mod mcp_conformance;
#[cfg(feature = "otel")]
#[path = "mcp/otel.rs"]
mod otel;
#[path = "mcp/talk.rs"]
mod talk;
#[path = "mcp/tools.rs"]
mod tools;

use palisade_tests::mcp::Client;
use palisade_tests::{Guest, Program, World, is_tested};
use serde_json::{Value, json};

palisade_tests::foreach_mcp!(is_tested);

/// The program with a guest's tools and no others.
fn serving(world: &World, guest: Guest) -> Program<'_> {
    Program::new(world).args(["--no-builtin", "--plugins"]).args([guest.directory()])
}

/// A client of the previous revision that can nothing but call.
fn plain(world: &World, guest: Guest) -> Client {
    Client::legacy(serving(world, guest), &json!({}))
}

/// The parameters of a call.
fn call(tool: &str, arguments: impl Into<Value>) -> Value {
    json!({"name": tool, "arguments": arguments.into()})
}

/// The text of a result, its blocks joined.
fn text(answer: &Value) -> String {
    let blocks = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("no content: {answer}"));
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
