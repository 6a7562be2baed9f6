//! The [`Tool`] trait, which native and WebAssembly tools implement, with its factory, the context
//! of a call, and the resources that calls share.

pub(crate) mod account;
mod box_future;
mod call_queue;
pub(crate) mod catch_panic;
pub mod client;
pub(crate) mod clock;
pub mod context;
pub(crate) mod deferred_drop;
pub mod factory;
pub(crate) mod inherited;
mod input;
pub(crate) mod offload;
mod output;
pub(crate) mod owner;
pub(crate) mod share;
pub(crate) mod thread_pool;
mod tool;

pub use box_future::BoxFuture;
pub use call_queue::WAITING_CALLS;
pub(crate) use call_queue::enter_queue;
pub(crate) use catch_panic::catch_panic;
pub use client::{AskFailure, Client, NoClient};
pub use context::{Caller, Progress, Report, Severity, Silent, Sink, Times, ToolContext};
pub use factory::{Factory, has_distinct_instances};
pub use input::ValidInput;
pub use output::{Outcome, ToolOutput};
pub(crate) use owner::{FirstTick, OwnerShares};
pub use tool::Tool;
