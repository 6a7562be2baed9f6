//! The output of a guest: converted, bounded, and checked against the tool's schema.

mod breach;
mod conform;
mod content;
mod convert;

pub(super) use conform::conforming;
pub(super) use convert::{Converted, METADATA, Terms, output, returned};
