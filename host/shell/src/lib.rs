//! The native tool `shell` of Palisade: runs one shell command in the workspace, confined by the
//! kernel, and kills its processes when the call ends.
//!
//! A plugin runs in a WebAssembly sandbox, which cannot contain a program of the system. This tool
//! runs such programs in the host's place: Landlock and a seccomp filter confine each command
//! (Linux 6.2 or later), and a helper process, if there is one, ends all of its processes.
//!
//! A host gets the tool by its factory:
//!
//! ```
//! use palisade::{Host, SideEffects, json, plugins::Shipped, policy::Policy};
//! use palisade_shell::{Shell, ShellOptions};
//!
//! # #[cfg(target_os = "linux")]
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let workspace = tempfile::tempdir()?;
//!     let host = Host::builder()
//!         .workspace(workspace.path())
//!         .shipped(Shipped::LeftOut)
//!         .tool(Shell::factory(ShellOptions::default()))
//!         .policy(Policy::default().allowing(SideEffects::Execute))
//!         .build()?;
//!     let result = host.call("shell", json!({"command": "echo 42 > f; cat f"}), json!({})).await;
//!     assert_eq!(result.output().as_deref(), Some("42\n"));
//!     Ok(())
//! }
//! # #[cfg(not(target_os = "linux"))]
//! # fn main() {}
//! ```

mod command;
mod confine;
mod environment;
#[cfg(target_os = "linux")]
mod helper;
mod launch;
mod options;
mod process;
mod service;
mod start_error;
#[cfg(test)]
mod tests;
mod tool;

pub use confine::landlock_abi;
#[cfg(target_os = "linux")]
pub use helper::{HelperError, hold_command};
pub use options::{Confinement, Network, ShellHelper, ShellLimits, ShellOptions};
pub use service::{Service, ServiceCommand, ServiceProcess};
pub use tool::Shell;
