//! The [`Tool`] trait, which native and WebAssembly tools implement, with its factory, the context
//! of a call, and the resources that calls share.

pub(crate) mod account;
pub(crate) mod box_future;
mod call_queue;
pub(crate) mod catch_panic;
pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod deferred_drop;
pub(crate) mod factory;
pub(crate) mod inherited;
pub(crate) mod input;
mod nested;
pub(crate) mod offload;
pub(crate) mod output;
pub(crate) mod owner;
mod report;
pub(crate) mod session_shares;
pub(crate) mod share;
pub(crate) mod thread_pool;
pub(crate) mod tool;
mod tool_server;
mod tool_time;

pub(crate) use box_future::BoxFuture;
pub use call_queue::WAITING_CALLS;
pub(crate) use call_queue::enter_queue;
pub(crate) use catch_panic::catch_panic;
pub use client::NoClient;
pub(crate) use client::{AskFailure, Client};
pub(crate) use context::ToolContext;
pub use context::{Caller, Progress, Severity, Silent, Sink, Times};
pub(crate) use factory::Factory;
pub(crate) use factory::are_distinct;
pub use factory::has_distinct_instances;
pub(crate) use input::{Unused, UnusedInput, ValidInput};
pub use nested::NESTED_CALLS;
pub(crate) use nested::{NestedCall, NestedExit, Nesting, ToolCaller};
pub use output::Outcome;
pub(crate) use output::ToolOutput;
pub(crate) use owner::{FirstTick, OwnerShares};
pub use report::Report;
pub(crate) use session_shares::SessionShares;
pub(crate) use tool::Tool;
pub use tool_server::{ServerPlace, ToolServer};
pub use tool_time::ToolTime;
