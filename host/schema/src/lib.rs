//! Untrusted JSON for the host Palisade: bounded parsing, validation against untrusted schemas, and
//! display that cannot deceive a reader.
//!
//! The crate `palisade` re-exports the parts that embedders need below `palisade::tool`; use them
//! from there.

pub mod budget;
pub mod json;
mod nearest;
pub mod schema;
pub mod text;

pub use nearest::nearest_names;

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
