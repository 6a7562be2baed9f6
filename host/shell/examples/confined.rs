//! Runs one command in a temporary workspace, confined: `cargo run -p palisade-shell --example
//! confined`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use palisade::{Host, SideEffects, json, plugins::Shipped, policy::Policy};
use palisade_shell::{Shell, ShellOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workspace = tempfile::tempdir()?;
    let host = Host::builder()
        .workspace(workspace.path())
        .shipped(Shipped::LeftOut)
        .tool(Shell::factory(ShellOptions::default()))
        .policy(Policy::default().allowing(SideEffects::Execute))
        .build()?;
    // The command may write in the workspace; the second file is out of its reach.
    let command = "echo 42 > answer; cat answer; cat /etc/shadow";
    let result = host.call("shell", json!({"command": command}), json!({})).await;
    println!("{}", result.content()[0].as_text());
    Ok(())
}
