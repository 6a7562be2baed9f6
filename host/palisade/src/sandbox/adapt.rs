//! Components of other worlds: their functions become tools, under a class that the operator
//! chooses. The types of a function give the schemas of its tool, and the conversion between JSON
//! and the values of the component.
//!
//! Types and functions are resolved once for each plugin, not for each call.

mod docs;
mod exports;
mod from_value;
mod function;
mod functions;
mod lifted;
mod package_docs;
mod schema;
mod shape;
mod to_text;
mod unfit;
mod world;

pub use docs::Docs;
pub(crate) use from_value::{Lowered, Mismatch};
pub(crate) use function::{Answered, Function};
pub(crate) use functions::{Derived, Functions, derived};
pub(crate) use package_docs::package_docs;
pub(crate) use to_text::NoAnswer;
pub use world::{Adaptation, World};
