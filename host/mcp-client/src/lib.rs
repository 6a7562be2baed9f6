//! The tools of MCP servers as tools of a `palisade` host.
//!
//! A host that gets tools from here shows and runs only what a person has approved. The approval
//! holds the words of the tools: their names, descriptions and schemas. A host shows these words,
//! and starts no server for that. The server starts at the first call, with the words that it
//! offers then: a tool whose words differ from the approved ones is refused.
//!
//! A call passes everything that a call of a plugin passes: validation, policy, confirmation, time
//! limit, cancellation, events, journal. A server is a program of the machine all the same, which
//! no WebAssembly sandbox holds: [`ServerCommand::options`] says how the kernel confines it.
//!
//! ```no_run
//! use palisade::{Host, SideEffects};
//! use palisade_mcp_client::{Approvals, Classes, Reach, Server, ServerCommand, ServerName};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let name = ServerName::parse("git")?;
//! let reach = Reach::Command(ServerCommand::new("mcp-server-git"));
//! let approval = Approvals::in_folder("mcp-servers").of(&name, &reach)?;
//! let server = Server::new(name, reach, &Classes::all(SideEffects::Network), &approval);
//! let tools = server.factories();
//! let host = tools.into_iter().fold(Host::builder(), |host, tool| host.tool(tool)).build()?;
//! # Ok(())
//! # }
//! ```
//!
//! Each module uses only modules before it in this order: `name`, `offer`, `reach`, `approval`,
//! `runtime`, `handler`, `surrogates`, `inbox`, `lines`, `events`, `remote`, `connect_error`,
//! `process`, `output`, `connection`, `starts`, `connections`, `tool`, `server`.

mod approval;
mod connect_error;
mod connection;
mod connections;
mod events;
mod handler;
mod inbox;
mod lines;
mod name;
mod offer;
mod output;
mod process;
mod reach;
mod remote;
mod runtime;
mod schemas;
mod server;
mod starts;
mod surrogates;
mod tool;

pub use approval::{Approval, ApprovalError, Approvals, Difference};
pub use connect_error::ConnectError;
pub use connection::look;
pub use name::{InvalidServerName, ServerName};
pub use offer::{Offer, OfferedTool};
pub use reach::{Reach, ServerCommand, ServerUrl, UrlError};
pub use runtime::end_all;
pub use server::{Classes, LeftOut, Server};
pub use tool::{sandbox_of, server_of};
