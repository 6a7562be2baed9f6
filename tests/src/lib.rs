//! The common parts of the test suites: guests, workspaces with a canary beside them, and test
//! cases that run through the library and through the program.

#![allow(missing_debug_implementations, reason = "the suites print none of these types")]

pub mod api;
pub mod bomb;
pub mod caches;
pub mod case;
pub mod circles;
#[cfg(feature = "otel")]
pub mod collector;
pub mod dice;
pub mod event_stream;
pub mod events;
pub mod expanding_json;
#[cfg(target_os = "linux")]
pub mod frozen;
pub mod fuzz;
pub mod guest;
pub mod mcp;
pub mod mcp_http;
pub mod mounted;
pub mod native;
pub mod observed;
pub mod oracle;
pub mod program;
pub mod rows;
pub mod sample;
pub mod soak;
pub mod sources;
pub mod stage;
pub mod tasks;
pub mod toolchain;
pub mod uniform;
pub mod wat;
pub mod without_openat2;
pub mod world;

pub use case::{Case, Plugins};
pub use events::Recorder;
pub use guest::Guest;
pub use observed::Observed;
pub use oracle::Oracle;
pub use program::Program;
pub use stage::{Stage, host_builder};
pub use wat::Wat;
pub use world::World;

use std::io::Write as _;

/// Reports on standard error why a test is skipped.
pub fn skip(why: &str) {
    // Not `eprintln!`: the test harness would capture it.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
