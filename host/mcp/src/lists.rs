//! The lists of tools, resources and prompts, and the notifications of their changes.

pub(crate) mod change_channel;
pub(crate) mod changes;
pub(crate) mod filter;
pub(crate) mod page;
pub(crate) mod resources_and_prompts;
pub(crate) mod tools;
