//! Tests the MCP server: listings, requests, notifications and cancellation.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "mcp/ask.rs"]
mod ask;
#[path = "mcp/confirm.rs"]
mod confirm;
#[path = "mcp/connections.rs"]
mod connections;
#[path = "mcp/http.rs"]
mod http;
#[path = "mcp/http_access.rs"]
mod http_access;
#[path = "mcp/http_cancel.rs"]
mod http_cancel;
#[path = "mcp/mcp_conformance.rs"]
mod mcp_conformance;
#[path = "mcp/mcp_visitor.rs"]
mod mcp_visitor;
#[path = "mcp/notifications.rs"]
mod notifications;
#[path = "mcp/offers.rs"]
mod offers;
#[cfg(feature = "otel")]
#[path = "mcp/otel.rs"]
mod otel;
#[path = "mcp/revisions.rs"]
mod revisions;
#[path = "mcp/shares.rs"]
mod shares;
#[path = "mcp/starting.rs"]
mod starting;
#[path = "mcp/stdio.rs"]
mod stdio;
#[path = "mcp/token.rs"]
mod token;
#[path = "mcp/tools.rs"]
mod tools;
#[path = "mcp/watch.rs"]
mod watch;

use palisade_tests::mcp::Client;
use palisade_tests::{Guest, Program, World, is_tested};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

palisade_tests::foreach_mcp!(is_tested);

/// Returns the program with a guest's tools and no others. The guest is compiled before, since a
/// server lists only the plugins that it has loaded.
fn serving(world: &World, guest: Guest) -> Program<'_> {
    static COMPILED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let program =
        || Program::new(world).args(["--no-builtin", "--plugins"]).args([guest.directory()]);
    // Under the lock, so that another test waits for the compilation.
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if !compiled.contains(guest.name()) {
        let _ = program().args(["list"]).run();
        compiled.insert(guest.name());
    }
    program()
}

/// Connects a client of the previous revision without capabilities.
fn plain(world: &World, guest: Guest) -> Client {
    Client::legacy(serving(world, guest), &json!({}))
}

/// Connects a client of the previous revision to a server with these options.
fn legacy_of(program: Program<'_>, options: &[&str]) -> Client {
    Client::start_with(program, options).shake_hands(&json!({}))
}

/// Returns the parameters of a call.
fn call(tool: &str, arguments: impl Into<Value>) -> Value {
    json!({"name": tool, "arguments": arguments.into()})
}

/// Returns the text of a result, its blocks joined.
fn text(answer: &Value) -> String {
    let blocks =
        answer["result"]["content"].as_array().unwrap_or_else(|| panic!("no content: {answer}"));
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
