//! The requests that run plugins: calls of tools, resources and prompts, with the notifications and
//! questions while they run.

mod notifier;
mod pending_output;
pub(crate) mod plugin_request;
mod progress_throttle;
pub(crate) mod prompt;
mod resource;
mod respond;
mod tool_call;
