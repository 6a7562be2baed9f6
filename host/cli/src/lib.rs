//! The program `palisade` and its configuration file `palisade.toml`.
//!
//! This crate is a library so that tests can run the program under another name. Programs that call
//! tools embed the crate `palisade`.

mod cli;
pub mod config;

pub use cli::{command, main};
/// The allocator of the program, which each executable declares as its own.
pub use tikv_jemallocator::Jemalloc as Allocator;
