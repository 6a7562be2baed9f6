//! Tests MCP servers as sources of tools: their tools are on the road of every call, with the words
//! that a person approved, and a server that misbehaves ends alone.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "servers/bounds.rs"]
mod bounds;
#[path = "servers/calls.rs"]
mod calls;
#[path = "servers/confined.rs"]
mod confined;
#[path = "servers/remote.rs"]
mod remote;
#[path = "servers/words.rs"]
mod words;

use palisade_tests::mcp::Client;
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Returns the folder of the scripted server.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers")
}

/// Writes the configuration of a user with the scripted server as `scripted`, which behaves in this
/// way, and with more lines in its table.
fn configure(world: &World, mode: &str, more: &str) {
    let folder_of_user = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder_of_user).unwrap();
    let script = folder().join("scripted.sh");
    let table = format!(
        "[mcp.servers.scripted]\ncommand = \"sh\"\nargs = [\"{}\", \"{mode}\", \"{{workspace}}\"]\n{more}\n",
        script.display()
    );
    std::fs::write(folder_of_user.join("palisade.toml"), table).unwrap();
}

/// Returns the program with this command line.
fn program<'w>(world: &'w World, words: &[&str]) -> Program<'w> {
    Program::new(world).args(words.iter().copied())
}

/// Configures the scripted server, approves what it offers, and removes the traces of its start.
fn approved(mode: &str, more: &str) -> World {
    let world = World::new();
    configure(&world, mode, more);
    approve(&world);
    world
}

/// Approves what the scripted server offers.
fn approve(world: &World) {
    let ran = program(world, &["mcp", "approve", "scripted", "--yes"]).run().exits_with(0);
    assert!(ran.stdout.contains("`scripted` is approved"), "{}", ran.stdout);
    std::fs::remove_file(world.root().join("starts")).unwrap();
}

/// Returns the number of starts of the server.
fn starts(world: &World) -> usize {
    world.read("starts").unwrap_or_default().lines().count()
}

/// Starts a server of the specification with the tools of the scripted server.
fn serve(world: &World) -> Client {
    let serving = program(world, &[]);
    Client::start_with(serving, &["--allow", "network"]).shake_hands(&json!({}))
}

fn call(client: &mut Client, tool: &str, text: &str) -> Value {
    client.request("tools/call", &json!({"name": tool, "arguments": {"text": text}}))
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}
