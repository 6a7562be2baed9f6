//! A guest with a tool that waits for a file, and with one tool of each side-effect class.

use std::time::Duration;

use palisade_guest::{Context, Result, WorkspacePath, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// The path of the gate.
#[derive(Deserialize, JsonSchema)]
struct Gate {
    /// The file that opens the gate.
    path: WorkspacePath,
}

/// Reports its start, waits for the file, and returns its contents.
#[tool(side_effects = "read")]
fn wait_for(gate: Gate, ctx: &Context) -> Result<String> {
    ctx.emit("started");
    loop {
        if let Ok(text) = std::fs::read_to_string(&gate.path) {
            return Ok(text);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The input of the tools of each class.
#[derive(Deserialize, JsonSchema)]
struct Number {
    /// Any number.
    number: i64,
}

/// A tool of class none.
#[tool(side_effects = "none")]
fn of_none(number: Number) -> String {
    number.number.to_string()
}

/// A tool of class read.
#[tool(side_effects = "read")]
fn of_read(number: Number) -> String {
    number.number.to_string()
}

/// A tool of class write.
#[tool(side_effects = "write")]
fn of_write(number: Number) -> Result<String> {
    std::fs::write("written.txt", number.number.to_string())?;
    Ok(number.number.to_string())
}

/// A tool of class execute.
#[tool(side_effects = "execute")]
fn of_execute(number: Number) -> String {
    number.number.to_string()
}

/// A tool of class network.
#[tool(side_effects = "network")]
fn of_network(number: Number) -> String {
    number.number.to_string()
}

palisade_guest::export!(wait_for, of_none, of_read, of_write, of_execute, of_network);
