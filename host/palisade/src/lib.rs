//! Palisade runs untrusted tools in a WebAssembly sandbox that adds little latency to a call.
//!
//! A *tool* is a function that an agent's model may call. A *plugin* is one WebAssembly component
//! that offers tools. The host loads plugins from a directory and runs every call in a fresh
//! sandbox. The sandbox has access to one workspace directory only and is discarded when the call
//! ends. Each call returns a [`ToolResult`], even if the plugin fails.
//!
//! ```
//! use palisade::{Host, json};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), palisade::BuildError> {
//!     let host = Host::builder().workspace(".").build()?;
//!     let result = host.call("calculate", json!({"expression": "6 * 7"}), json!({})).await;
//!     assert_eq!(result.output().as_deref(), Some("42"));
//!     Ok(())
//! }
//! ```

#[cfg(not(unix))]
compile_error!(
    "Palisade does not run on this system yet: its file system for plugins needs the system calls \
     of Unix. It supports Linux; macOS and other Unix systems are untested."
);

pub mod confirm;
mod dispatch;
pub mod events;
pub mod execution;
mod host;
#[doc(hidden)]
pub mod internal;
pub mod plugins;
pub mod policy;
pub mod registry;
pub mod sandbox;
mod session;
pub mod tool;
pub mod workspace;

pub use dispatch::{
    CallEnd, CallMode, CallRecorder, CallStart, Conversation, Execution, Explanation, NotRecorded,
    Requester, Transcript,
};
pub use execution::box_future::BoxFuture;
pub use execution::client::{AskFailure, Client};
pub use execution::context::ToolContext;
pub use execution::factory::Factory;
pub use execution::input::ValidInput;
pub use execution::output::ToolOutput;
pub use execution::tool::Tool;
pub use host::{BuildError, CacheMode, Exported, Host, HostBuilder, UnmatchedRule};
/// The formats of model providers: definitions, replies and messages.
pub use palisade_formats as formats;
pub use serde_json::json;
pub use session::{Advertised, Allowed, Presentation, Session, SessionBuilder};
pub use tokio_util::sync::CancellationToken;
pub use tool::ask::{AskKind, AskKinds, AskRequest};
pub use tool::call::{Call, CallId};
pub use tool::content::Content;
pub use tool::definition::{Definition, DefinitionError};
pub use tool::error::{
    Advice, ErrorClass, ErrorKind, ExecutionKind, Limit, PermissionReason, Places, ToolError,
};
pub use tool::result::ToolResult;
pub use tool::side_effects::SideEffects;
