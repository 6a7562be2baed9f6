//! The description of a plugin, in the plugin's own words.

use super::bindings::exports::palisade::tool::tool::Definition;
use crate::tool::offer::Offer;
use crate::tool::text::elided;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The imports, the tools, and the resources and prompts of a plugin. Nothing in it is checked.
pub(crate) struct Description {
    /// The names of the imports.
    pub(crate) imports: Vec<String>,
    /// The tools.
    pub(crate) tools: Vec<Definition>,
    /// The resources and prompts.
    pub(crate) offer: Offer,
    /// The functions that are no tools, of a component of another world.
    pub(crate) left_out: Vec<LeftOut>,
}

/// An exported function of a component that is no tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The name of the function, after that of its interface and `#`, in printable form.
    pub function: String,
    /// The reason, with what would be accepted.
    pub reason: String,
}

impl LeftOut {
    pub(crate) fn new(function: &str, reason: &impl fmt::Display) -> Self {
        Self { function: elided(function, 256), reason: reason.to_string() }
    }
}
