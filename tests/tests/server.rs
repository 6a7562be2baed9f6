//! Tests the server: who gets in, its API, its events, its journal and its end, each against the
//! whole program.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "server/access.rs"]
mod access;
#[path = "server/cannot_ask.rs"]
mod cannot_ask;
#[path = "server/confirmations.rs"]
mod confirmations;
#[path = "server/cuts.rs"]
mod cuts;
#[path = "server/drain.rs"]
mod drain;
#[path = "server/examples.rs"]
mod examples;
#[path = "server/hidden.rs"]
mod hidden;
#[path = "server/killed.rs"]
mod killed;
#[path = "server/log.rs"]
mod log;
#[path = "server/login.rs"]
mod login;
#[path = "server/mcp_client.rs"]
mod mcp_client;
#[path = "server/mcp_sessions.rs"]
mod mcp_sessions;
#[path = "server/memory.rs"]
mod memory;
#[path = "server/only_operator.rs"]
mod only_operator;
#[path = "server/other_ports.rs"]
mod other_ports;
#[path = "server/other_users.rs"]
mod other_users;
#[path = "server/systemd.rs"]
mod systemd;
#[allow(dead_code, reason = "the suite `program` uses the rest")]
#[path = "program/terminal.rs"]
mod terminal;
#[path = "server/watch.rs"]
mod watch;
#[path = "server/ways.rs"]
mod ways;

use palisade_tests::World;
use palisade_tests::api::Api;

/// Starts a server with a session `s1` of a client.
fn served(world: &World, words: &[&str]) -> Api {
    let api = Api::start(world, words);
    api.session("s1");
    api
}

/// Returns the number in a variable, by which a longer run is asked for, or the usual number.
fn rounds(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}
