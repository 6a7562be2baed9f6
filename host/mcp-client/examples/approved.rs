//! Approves an MCP server after its tools were shown, and lists them as tools of a host:
//! `cargo run -p palisade-mcp-client --example approved -- mcp-server-time`.

#![allow(clippy::print_stdout, reason = "an example prints")]

use palisade::workspace::Workspace;
use palisade::{Host, SideEffects};
use palisade_mcp_client::{Approvals, Classes, Reach, Server, ServerCommand, ServerName, look};
use std::error::Error;
use std::io::stdin;
use std::path::Path;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let program = words.next().ok_or("name the program of an MCP server")?;
    let reach = Reach::Command(ServerCommand::new(program).arguments(words));
    let name = ServerName::parse("example")?;
    let approvals = Approvals::in_folder(std::env::temp_dir().join("palisade-example-approvals"));
    let offer = look(&reach, Arc::new(Workspace::open(Path::new("."))?)).await?;
    for tool in &offer.tools {
        println!("{}: {}", tool.name, tool.description.as_deref().unwrap_or_default());
    }
    println!("May a host offer these tools? Enter is yes, Ctrl-C is no.");
    stdin().read_line(&mut String::new())?;
    approvals.approve(&name, &reach, offer)?;
    let approval = approvals.of(&name, &reach)?;
    let server = Server::new(name, reach, &Classes::all(SideEffects::Network), &approval);
    let builder = server.factories().into_iter().fold(Host::builder(), palisade::HostBuilder::tool);
    let host = builder.workspace(".").build()?;
    for tool in host.tools(host.session()) {
        println!("{}", tool.definition().name());
    }
    Ok(())
}
