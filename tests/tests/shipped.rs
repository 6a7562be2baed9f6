//! Tests the shipped tools: each behaves as described, as WebAssembly, through the library and the
//! program.

#[path = "shipped/all_tools.rs"]
mod all_tools;
#[path = "shipped/calculate.rs"]
mod calculate;
#[path = "shipped/delete.rs"]
mod delete;
#[path = "shipped/find.rs"]
mod find;
#[path = "shipped/hidepid.rs"]
mod hidepid;
#[path = "shipped/list.rs"]
mod list;
#[path = "shipped/patch.rs"]
mod patch;
#[path = "shipped/read.rs"]
mod read;
#[path = "shipped/search.rs"]
mod search;
#[cfg(target_os = "linux")]
#[path = "shipped/shell.rs"]
mod shell;
#[path = "shipped/shell_limits.rs"]
mod shell_limits;
#[path = "shipped/write.rs"]
mod write;

use palisade::SideEffects;
use palisade_tests::{Case, Plugins};
use serde_json::Value;

/// Returns a call of a shipped tool.
fn call(tool: &str, input: Value) -> Case {
    Case::new(Plugins::Shipped, tool).input(input)
}

/// Returns a call with classes `write` and `execute` allowed.
fn allowed(tool: &str, input: Value) -> Case {
    call(tool, input).allow(SideEffects::Write).allow(SideEffects::Execute)
}
