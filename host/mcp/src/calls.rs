//! The requests that run plugins: tool calls, and the notifications while they run.

pub(crate) mod notifier;
mod progress_throttle;
pub(crate) mod tool_call;
