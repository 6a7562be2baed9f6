//! Calls of plugins: their tools, and their resources and prompts.

mod answer;
mod compact_json;
mod factories;
mod failure;
mod load_code;
mod offered;
mod report;
mod request;
mod wasm_tool;
mod with_powers;

pub use offered::{Offered, ROLES};
