//! Builds a plugin with the SDK of each language other than Rust, and calls it through the program.
//!
//! A language whose toolchain or packages cannot be had is skipped with a message.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "sdks/c.rs"]
mod c;
#[path = "sdks/javascript.rs"]
mod javascript;
#[path = "sdks/promises.rs"]
mod promises;
#[path = "sdks/python.rs"]
mod python;
