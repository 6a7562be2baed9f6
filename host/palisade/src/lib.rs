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
//!
//! Modules depend downwards only, in this order.

#[cfg(not(unix))]
compile_error!(
    "Palisade does not run on this system yet: its file system for plugins needs the system calls \
     of Unix. It supports Linux; macOS and other Unix systems are untested."
);

pub mod confirm;
pub mod dispatch;
pub mod events;
pub mod execution;
pub mod host;
#[doc(hidden)]
pub mod internal;
pub mod plugins;
pub mod policy;
pub mod registry;
pub mod sandbox;
pub mod session;
pub mod tool;
pub mod workspace;

pub use confirm::{
    Answer, AnswerRefused, ConfirmFn, ConfirmationQueue, ConfirmationRequest, Confirmer, Decision,
    DenyAll, FirstOf, RequestId, Unavailable,
};
pub use dispatch::{CallMode, Requester, Transcript};
pub use events::{Envelope, Event, EventStream, Subscriber};
pub use execution::{
    AskFailure, BoxFuture, Client, Factory, Tool, ToolContext, ToolOutput, ValidInput,
};
pub use host::{BuildError, CacheMode, Host, HostBuilder};
/// The formats of model providers: definitions, replies and messages.
pub use palisade_formats as formats;
pub use plugins::Shipped;
pub use policy::{Mode, Policy};
pub use registry::{DuplicateTool, Origin, Registry, ToolNotFound};
pub use sandbox::{ChildCompiler, CompileLimits, Compiler, Limits, answer_compilation};
pub use serde_json::json;
pub use session::{Advertised, Session, SessionBuilder};
pub use tokio_util::sync::CancellationToken;
pub use tool::{
    Advice, AskKind, AskKinds, AskRequest, Call, CallId, Content, Definition, DefinitionError,
    ErrorClass, ErrorKind, ExecutionKind, Limit, PermissionReason, Places, SideEffects, ToolError,
    ToolResult,
};
pub use workspace::{HardLinks, Workspace};
