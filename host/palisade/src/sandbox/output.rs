//! The output of a guest: converted, bounded, and checked against the tool's schema. The outputs of
//! native tools are checked in the same way.

mod breach;
mod conform;
mod content;
mod convert;

pub(crate) use breach::Promiser;
pub(crate) use conform::conforming;
pub(crate) use convert::Terms;
pub(super) use convert::{Converted, METADATA, output, returned};
