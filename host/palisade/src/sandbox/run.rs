//! The run of a guest: its store with all limits, the interfaces that it can call, and the end of
//! its run.

mod bounded;
mod called_content;
mod client_interface;
mod client_requests;
mod denied;
mod exit_reason;
mod guest_signals;
mod host_interface;
mod interrupt;
mod limiter;
mod linked;
mod linker;
mod messages;
mod network;
mod refusals;
mod runtime;
mod state;
mod stdio;
mod store;
mod tool_calls;
mod tool_interface;
mod turns;
mod wasi_ctx;

pub(super) use bounded::{Stop, run_bounded, take_sandbox};
pub(super) use client_requests::ClientRequests;
pub(super) use exit_reason::{ExitReason, quota};
pub(super) use limiter::Limiter;
pub(super) use linked::{Contract, Linked};
pub(super) use messages::Messages;
pub use refusals::Refusals;
pub(super) use runtime::Runtime;
pub use state::State;
pub(super) use store::new_store;
pub(super) use tool_calls::ToolCalls;
pub(super) use turns::RunBounds;
pub(super) use wasi_ctx::LazyWasiCtx;
